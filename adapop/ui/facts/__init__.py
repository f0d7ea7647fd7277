"""The Facts screen."""
