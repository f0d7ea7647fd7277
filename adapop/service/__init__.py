"""Serves runs to many people at once: worker, queue, limits by visitor, links, cleaning up."""
