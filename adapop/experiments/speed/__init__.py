"""How fast the app is: passes, whole runs, and waiting times."""
