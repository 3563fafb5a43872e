"""The largest resident size that this process has had."""

from __future__ import annotations

import re
import resource
from pathlib import Path


def peak_kilobytes() -> int:
    """Return it in kilobytes.

    ``ru_maxrss`` is inherited from the parent across fork and exec, so that a small child of a
    large parent looks large; Linux's VmHWM begins anew with the program.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
        if found:
            return int(found[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
