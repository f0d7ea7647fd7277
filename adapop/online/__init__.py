"""The one polite HTTP client, its cache, and rows of the Hugging Face Hub."""
