"""``python -m attnscope`` is ``attnscope``."""

import sys

from attnscope.cli import main

if __name__ == "__main__":
    sys.exit(main())
