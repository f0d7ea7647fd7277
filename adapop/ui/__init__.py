"""The Gradio app: thin screens over the engine. Read `page`, then the five screens; all prose is in `texts`."""
