"""Starts AdaPop Explorer: `python app.py`, or as a Hugging Face Space."""

from adapop.ui.shell import launch

if __name__ == "__main__":
    launch()
