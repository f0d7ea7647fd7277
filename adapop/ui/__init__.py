"""The Gradio app: thin screens over the engine. Start at `page`; words stand where they show."""
