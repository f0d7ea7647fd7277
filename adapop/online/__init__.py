"""Other hosts: the HTTP client, the cache of its replies, and files of the Hugging Face Hub."""
