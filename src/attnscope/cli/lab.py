"""``attnscope lab [FOLDER]``: the page in the browser where training answers a slider."""

from __future__ import annotations

import sys

from attnscope.cli.arguments import Parser


def parser(description: str) -> Parser:
    """Return what reads the words after ``attnscope lab``."""
    made = Parser(
        prog="attnscope lab",
        description=f"{description}. It listens on this machine alone unless --host says more.",
    )
    made.add_argument("folder", nargs="?", default="runs", help="folder of runs (default: runs)")
    made.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; others than loopback make the lab ask for a token",
    )
    made.add_argument("--port", type=int, default=5006, help="port (default: 5006; 0: any free)")
    made.add_argument("--no-open", action="store_true", help="do not open the browser")
    return made


def lab(words: list[str], description: str) -> int:
    """Serve until Ctrl-C."""
    options = parser(description).parse_args(words)
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
        )
    except KeyboardInterrupt:
        print("\nattnscope lab: ended.")
    return 0
