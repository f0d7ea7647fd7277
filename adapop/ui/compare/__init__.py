"""The Compare screen."""
