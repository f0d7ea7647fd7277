"""The Probe screen."""
