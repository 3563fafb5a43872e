"""Readers of published formats, one file a format."""
