"""Shortcuts: what gives a label away without being what the text says."""

from attnscope.probes.shortcuts.duplicates import Duplicates, find_duplicates
from attnscope.probes.shortcuts.find import Search, Shortcut, find_shortcuts

__all__ = ["Duplicates", "Search", "Shortcut", "find_duplicates", "find_shortcuts"]
