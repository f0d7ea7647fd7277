"""Probes: asking both models in many forms, attacks, recovery from inside the model, and what the
results mean."""
