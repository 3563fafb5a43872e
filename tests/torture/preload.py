"""The library that kills a process at one of its file operations: building, loading, asking it."""

from __future__ import annotations

import atexit
import ctypes
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("preload.c")
LOADED = "TORTURE_LIBRARY"
TEXT = 1024
SIZE = 16 + 3 * TEXT


def compiler() -> str | None:
    """Return the C compiler of this machine, if it can preload libraries."""
    return (shutil.which("cc") or shutil.which("gcc")) if sys.platform == "linux" else None


def build(folder: Path) -> Path:
    """Compile the library."""
    library, cc = folder / "torture.so", compiler()
    assert cc is not None
    command = [cc, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


def start_again(module: str) -> None:
    """Go on with this program as one that has the library, unless it has it already."""
    if LOADED in os.environ:
        # Nobody needs the file any more but worker processes that are started later.
        atexit.register(shutil.rmtree, Path(os.environ[LOADED]).parent, ignore_errors=True)
        return
    library = str(build(Path(tempfile.mkdtemp(prefix="attnscope-library-"))))
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    environment = {**os.environ, **one, "LD_PRELOAD": library, LOADED: library}
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)


class Counter:
    """What the processes of one run have in common: ``struct shared`` of the library.

    Args:
        file: where it lies.
        root: operations below this folder are counted.
        target: number of the one at which the process group is killed; 0 for none.
        trace: a file for a line per operation.
    """

    def __init__(self, file: Path, root: Path, target: int = 0, trace: Path | None = None) -> None:
        self.file = file
        texts = (b"", str(root).encode(), str(trace or "").encode())
        data = struct.pack("=qq", 0, target) + b"".join(text.ljust(TEXT, b"\0") for text in texts)
        file.write_bytes(data)
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), SIZE)

    def begin(self) -> None:
        """Count from here on, in this process and in those that it starts."""
        os.environ["TORTURE_COUNTER"] = str(self.file)
        ctypes.CDLL(os.environ[LOADED]).torture_begin(str(self.file).encode())

    @property
    def count(self) -> int:
        """Operations so far."""
        return int(struct.unpack_from("=q", self._map)[0])

    @property
    def last(self) -> str:
        """The operation at which the processes were killed; empty if they were not."""
        return self._map[16 : 16 + TEXT].rstrip(b"\0").decode(errors="replace")
