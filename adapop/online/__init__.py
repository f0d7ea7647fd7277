"""Access to other hosts: the HTTP client, the cache of its replies, and data sets of the Hugging Face Hub."""
