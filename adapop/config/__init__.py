"""What a run is: its settings, the sixteen methods in words, and the presets."""
