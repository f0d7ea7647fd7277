"""Algorithm 1: events, controller, gradient, trainer. Loads nothing by itself."""
