"""``attnscope lab [FOLDER]``: the page in the browser where training answers a slider."""

from __future__ import annotations

import sys
from argparse import Namespace

from attnscope.cli.arguments import Parser, whole

SAYS = "the lab in the browser: training runs that answer a slider"


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.description = f"{SAYS}. It listens on this machine alone unless --host says more."
    parser.add_argument(
        "folder", nargs="?", default="runs", metavar="FOLDER", help="of runs (default: runs)"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; others than loopback make the lab ask for a token",
    )
    parser.add_argument("--port", type=whole, default=5006, help="default: 5006; 0: any free one")
    parser.add_argument(
        "--data",
        nargs="+",
        default=(),
        metavar="FILE",
        help="tables of text and label that the page on data may read",
    )
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")


def call(options: Namespace) -> int:
    """Serve until Ctrl-C."""
    if sys.stderr.isatty():  # Loading PyTorch takes seconds in which nothing else is to be seen.
        print("attnscope lab: starting ...", file=sys.stderr, flush=True)

    from attnscope.lab.server import serve

    def ready(address: str) -> None:
        print(f"attnscope lab: {address}\nCtrl-C ends it.", flush=True)

    try:
        serve(
            options.folder,
            host=options.host,
            port=options.port,
            open_browser=not options.no_open,
            ready=ready,
            tables=options.data,
        )
    except KeyboardInterrupt:
        print("\nattnscope lab: ended.")
    return 0
