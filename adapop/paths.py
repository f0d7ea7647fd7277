"""Where the checkout lies, and in it what is shipped beside the code."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ASSETS = ROOT / "assets"
SANDBOX_FOLDER = ASSETS / "sandbox"  # the model we ship, its tokenizer and its world
