"""The one polite HTTP client, its cache, and files of the Hugging Face Hub."""
