"""The Gradio app: thin screens over the engine. Read `shell`, then `facts`, `pressure`, `run`, `probe`; prose is in `copy`."""
