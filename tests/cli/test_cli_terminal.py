"""What is printed never crashes a command: full disks, closed streams, no Unicode."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnscope.cli import main
from attnscope.cli.terminal import refused

Capture = pytest.CaptureFixture[str]
LOST = "attnscope: standard output cannot be written (No space left on device)"
LATIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash in which ``attnscope`` is this one."""
    program = (
        f'attnscope() {{ "{sys.executable}" -P $FLAGS -m attnscope "$@"; }}; set -o pipefail; '
    )
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", program + line],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "120", **environment},
        capture_output=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["list", "--help", "list --help", "data"])
def test_a_full_disk_is_a_sentence(words: str, unbuffered: str, tmp_path: Path) -> None:
    done = shell(f"attnscope {words} >/dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(LOST)
    assert len(done.stderr.splitlines()) == 1


def test_help_of_a_study_on_a_full_disk(tmp_path: Path) -> None:
    done = shell("attnscope run lu2021.sen --help >/dev/full", tmp_path)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(LOST)


def test_nobody_can_be_told(tmp_path: Path) -> None:
    assert shell("attnscope list >/dev/full 2>&1", tmp_path).returncode == 2
    assert shell("attnscope lsit 2>/dev/full", tmp_path).returncode == 2


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    done = shell(f"attnscope list {closed}", tmp_path)
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_the_reader_of_a_pipe_goes(unbuffered: str, tmp_path: Path) -> None:
    done = shell("attnscope data | head -c 1", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"n", b"")


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    done = shell("attnscope data sms_spam", tmp_path, **LATIN)
    assert done.returncode == 0
    assert b"Almeida, G?mez Hidalgo" in done.stdout
    done = shell("attnscope data sms_spam", tmp_path, PYTHONIOENCODING="latin-1:strict")
    assert "Gómez".encode("latin-1") in done.stdout
    done = shell("attnscope show caf\udce9\u4e2d", tmp_path, **LATIN)
    assert done.returncode == 2
    assert b"is not a run" in done.stderr


def test_files_are_utf_8_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("label,text\nfröhlich,schön\ntraurig,öd\n", encoding="utf-8")
    code = (
        "from attnscope.datasets import labelled; print(ascii(labelled('mine.csv').classes))\n"
        "from attnscope.catalogue import summary; summary('lu2021.sen')"
    )
    (tmp_path / "read.py").write_text(code, encoding="utf-8")
    done = shell(f'"{sys.executable}" -X warn_default_encoding read.py', tmp_path, **LATIN)
    assert done.stdout.decode() == "('fr\\xf6hlich', 'traurig')\n", done.stderr
    assert b"EncodingWarning" not in done.stderr


def test_optimised_python_says_the_same(tmp_path: Path) -> None:
    one, other = (shell("attnscope list", tmp_path, FLAGS=flags) for flags in ("", "-OO"))
    assert (one.returncode, one.stdout, one.stderr) == (0, other.stdout, other.stderr)


def test_optimised_python_with_a_zarr_that_it_breaks(tmp_path: Path) -> None:
    done = shell("attnscope run lu2021.sen --variance -1", tmp_path, PYTHONOPTIMIZE="1")
    assert done.returncode == 2
    said = done.stderr.decode()
    assert "cannot read its own files under `python -O`" in said or "variance = -1.0" in said
    assert len(said.splitlines()) == 1


def test_what_the_system_refuses_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    name = "a" * 300
    assert main(["claims", "--runs", name + "/" + name]) in (0, 2)
    capsys.readouterr()
    monkeypatch.setattr("attnscope.cli._dispatch", lambda _: Path(name).read_bytes())
    assert main([]) == 2
    assert f"attnscope: '{name}': File name too long." in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("of 8 EiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_too_little_memory_is_a_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr("attnscope.cli._dispatch", fail)
    assert main([]) == 2
    assert "there is not enough memory" in capsys.readouterr().err


def test_other_errors_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr("attnscope.cli._dispatch", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        main([])


def test_sentences_of_the_system() -> None:
    assert refused(OSError(13, "Permission denied", b"x")).startswith("'x': Permission denied.")
    assert refused(OSError(28, "No space left on device")).startswith("standard output cannot be")
    assert refused(io.UnsupportedOperation("fileno")) == "the system says: fileno."
