"""The Story: the first tab, six steps that show the phenomenon from recorded runs."""
