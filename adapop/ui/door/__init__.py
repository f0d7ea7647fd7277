"""The door in front of Gradio: `gate` (what is let in), `pages` (served from memory), `streams`."""
