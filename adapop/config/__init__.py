"""The configuration of a run: its settings, descriptions of the methods, and the presets."""
