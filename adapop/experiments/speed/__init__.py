"""How fast: passes, whole runs, and what a person waits for."""
