"""``attnscope list``."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from attnscope.catalogue import names, summary


def listing() -> int:
    """Print the studies; nothing heavy is imported."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("study", no_wrap=True, style="cyan")
    table.add_column("what it shows")
    for name in names():
        table.add_row(name, summary(name))
    Console().print(table)
    return 0
