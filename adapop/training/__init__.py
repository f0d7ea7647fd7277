"""Algorithm 1 of the paper: events, controller, gradient, trainer. Loads nothing by itself."""
