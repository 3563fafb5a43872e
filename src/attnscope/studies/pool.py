"""Runs side by side: worker processes with one thread each.

Workers are ordinary processes that read the run's folder, so nothing is pickled, a script needs no
``if __name__ == "__main__"``, and a notebook works as well as a terminal.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import IO, Any

from attnscope.errors import AttnscopeError
from attnscope.trajectory import RunFolder

Message = dict[str, Any]


class Pool:
    """Worker processes that take run numbers from a common queue."""

    def __init__(self, folder: RunFolder, runs: Iterable[int], workers: int) -> None:
        self.pending: SimpleQueue[int] = SimpleQueue()
        for run in runs:
            self.pending.put(run)
        self.messages: SimpleQueue[Message] = SimpleQueue()
        command = [sys.executable, "-m", "attnscope.studies.worker", str(folder.path)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        # Files, for a pipe that nobody reads while the run goes on would fill up and stop it.
        complaints = [
            tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 (its thread closes it)
            for _ in range(workers)
        ]
        self.processes = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaint,
                text=True,
                env=environment,
            )
            for complaint in complaints
        ]
        self.threads = [
            threading.Thread(target=self._serve, args=pair, daemon=True)
            for pair in zip(self.processes, complaints, strict=True)
        ]
        for thread in self.threads:
            thread.start()

    def _serve(self, process: subprocess.Popen[str], complaints: IO[str]) -> None:
        """Hand out runs to one worker and pass on what it says."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in process.stdout:
                message = json.loads(line)
                if "ready" in message or "done" in message or "error" in message:
                    self._order(process)
                self.messages.put(message)
        except (BrokenPipeError, ValueError, json.JSONDecodeError):
            pass
        code = process.wait()
        self.messages.put({"left": True, "code": code, "stderr": _read_all(complaints)})
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()

    def _order(self, process: subprocess.Popen[str]) -> None:
        try:
            run = self.pending.get_nowait()
        except Empty:
            run = -1
        assert process.stdin is not None
        process.stdin.write(f"{run}\n")
        process.stdin.flush()

    def listen(self, hear: Callable[[Message], None]) -> None:
        """Pass on messages until every worker has left.

        Raises:
            AttnscopeError: a worker died.
        """
        died: list[Message] = []
        left = 0
        while left < len(self.processes):
            message = self.messages.get()
            if "left" in message:
                left += 1
                if message["code"] not in (0, -signal.SIGTERM):
                    died.append(message)
            else:
                hear(message)
        if died:
            trace = died[0]["stderr"].strip()
            last = trace.splitlines()[-1] if trace else f"exit code {died[0]['code']}"
            raise AttnscopeError(
                f"a worker process died ({last}). What it had written is kept: run again with "
                f"--resume.\n{trace}"
            )

    def stop(self) -> None:
        """Ask the workers to stop after their current step, and wait until they have."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                # A worker that waits for an order hears only its standard input.
                try:
                    assert process.stdin is not None
                    process.stdin.write("-1\n")
                    process.stdin.flush()
                except (BrokenPipeError, ValueError):
                    pass
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
        for thread in self.threads:
            thread.join(timeout=5)


def _read_all(file: IO[str]) -> str:
    with file:
        file.seek(0)
        return file.read()
