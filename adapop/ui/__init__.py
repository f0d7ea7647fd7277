"""The Gradio app: thin screens over the engine. Read `page`, the Story, then five screens; all
prose is in `texts`."""
