"""What a run is: its settings, the methods in words, and the presets."""
