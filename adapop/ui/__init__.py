"""The Gradio app: thin screens over the engine. Start at `page`; all prose is in `texts`."""
