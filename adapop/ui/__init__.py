"""The Gradio app: thin screens over the engine. Read `shell`, then the four screens; all prose is in `copy`."""
