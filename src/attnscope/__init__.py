"""A laboratory for how attention learns."""

__version__ = "0.1.0"
