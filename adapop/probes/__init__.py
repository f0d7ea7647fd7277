"""Probes: asking both models in many forms, attacks, recovery probes, what the results mean."""
