"""``attnscope export RUN --to TOOL``: the curves of a run for other people's tools."""

from __future__ import annotations

from argparse import Namespace

from attnscope.cli.arguments import Parser

SAYS = "the curves of a run as CSV, or for TensorBoard, W&B, MLflow"


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument(
        "--to", required=True, metavar="TOOL", help="csv, tensorboard, wandb, mlflow"
    )
    parser.add_argument("--out", metavar="PATH", help="where to; in the run's folder unless given")


def call(options: Namespace) -> int:
    """Write the curves, say where, and say what is left out."""
    from attnscope.cli.terminal import say
    from attnscope.export import export as write
    from attnscope.trajectory import open_run

    path, left = write(open_run(options.run), options.to, options.out)
    if left:
        maps = ", ".join(f"{name} ({count:,} numbers)" for name, count in left.items())
        say(f"left out, since it is no curve at a step but a map: {maps}")
    say(f"written: {path}")
    return 0
