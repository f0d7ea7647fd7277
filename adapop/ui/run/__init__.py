"""The Run screen."""
