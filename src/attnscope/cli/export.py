"""``attnscope export RUN --to TOOL``: the curves of a run for other people's tools."""

from __future__ import annotations

from attnscope.cli.arguments import Parser


def parser(description: str) -> Parser:
    """Return what reads the words after ``attnscope export``."""
    made = Parser(prog="attnscope export", description=description)
    made.add_argument("run", help="the run's folder")
    made.add_argument("--to", required=True, metavar="TOOL", help="csv, tensorboard, wandb, mlflow")
    made.add_argument("--out", metavar="PATH", help="where to; in the run's folder unless given")
    return made


def export(words: list[str], description: str) -> int:
    """Write the curves, say where, and say what is left out."""
    options = parser(description).parse_args(words)

    from rich.console import Console

    from attnscope.export import export as write
    from attnscope.trajectory import open_run

    path, left = write(open_run(options.run), options.to, options.out)
    console = Console()
    if left:
        maps = ", ".join(f"{name} ({count:,} numbers)" for name, count in left.items())
        text = f"left out, since it is no curve at a step but a map: {maps}"
        console.print(text, soft_wrap=True, highlight=False, markup=False)
    console.print(f"written: {path}", soft_wrap=True, highlight=False, markup=False)
    return 0
