"""Runs that are none, or worse: each is a row that says what is wrong, and no page fails."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import pytest
from lab_folders import EVIL, ask, served, write_run

from attnscope.lab import entries as entries_module
from attnscope.lab.entries import LARGEST, entries
from attnscope.lab.safety import no_way_out
from findings import finding

Place = tuple[str, int]


def manifest(root: Path, **values: object) -> None:
    write_run(root, "bad", findings=(finding(),), **values)  # type: ignore[arg-type]


def text(content: str, file: str = "run.json") -> Callable[[Path], None]:
    def make(root: Path) -> None:
        manifest(root)
        (root / "bad" / file).write_text(content)

    return make


def instead(make: Callable[[Path], None], file: str = "run.json") -> Callable[[Path], None]:
    def whole(root: Path) -> None:
        manifest(root)
        (root / "bad" / file).unlink(missing_ok=True)
        make(root / "bad" / file)

    return whole


def sparse(size: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.touch()
        os.truncate(path, size)

    return make


def told(**values: object) -> Callable[[Path], None]:
    """Write a run that has decided something odd."""
    odd = json.dumps([{**asdict(finding()), **values}])
    return text(odd, "findings.json")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def with_spec(spec: str) -> Callable[[Path], None]:
    """Write a manifest whose spec is this text, which no encoder would write."""

    def make(root: Path) -> None:
        manifest(root, spec={"m": "SPEC"})
        path = root / "bad" / "run.json"
        path.write_text(path.read_text().replace('"SPEC"', spec))

    return make


BAD: dict[str, Callable[[Path], None]] = {
    "100,000 brackets": text("[" * 100_000),
    "100,000 closed brackets": text(deep(100_000)),
    "100,000 objects": text('{"format":' * 100_000),
    "a list": text("[]"),
    "a number": text("3"),
    "null": text("null"),
    "no text": text("\x00\x01\x02"),
    "5,000 digits": text('{"format": ' + "9" * 5000 + "}"),
    "a format of 400 digits": lambda root: manifest(root, format=10**400),
    "a format that is a word": lambda root: manifest(root, format="one"),
    "runs that are a number": lambda root: manifest(root, status="", runs=3),
    "100,000 runs": lambda root: manifest(root, status="", runs=[{}] * 100_000),
    "a spec that is a list": lambda root: manifest(root, spec=[1]),
    "a spec of 400 digits": lambda root: manifest(root, spec={"m": 10**400}),
    "a deep spec": with_spec(deep(150)),
    "a deeper spec": with_spec(deep(900)),
    "no number": with_spec("NaN"),
    "half letters everywhere": lambda root: manifest(
        root, spec={"\ud800": "\udfff"}, study="\ud800", created="\ud800", status="\ud800"
    ),
    "markup everywhere": lambda root: manifest(
        root, spec={EVIL: EVIL}, study=EVIL, created=EVIL, status=EVIL
    ),
    "a study elsewhere": lambda root: manifest(root, study="evil.payload:X"),
    "a pipe": instead(os.mkfifo),
    "a folder": instead(Path.mkdir),
    "a link in a circle": instead(circle),
    "a link to nothing": instead(lambda path: path.symlink_to("nothing")),
    "a link to a device": instead(lambda path: path.symlink_to("/dev/zero")),
    "two gigabytes": instead(sparse(2 << 30)),
    "findings: a strange verdict": told(verdict="perhaps"),
    "findings: a verdict that is markup": told(verdict=EVIL),
    "findings: 400 digits": told(ours=10**400),
    "findings: a word as a number": told(ours="many"),
    "findings: a list as a sentence": told(sentence=[1]),
    "findings: half letters": told(key="\ud800", sentence="\udfff", source="\ud800"),
    "findings: no list": text("{}", "findings.json"),
    "findings: 100,000 brackets": text('"verdict": "holds"' + "[" * 100_000, "findings.json"),
    "findings: a pipe": instead(os.mkfifo, "findings.json"),
    "findings: two gigabytes": instead(sparse(2 << 30), "findings.json"),
    "findings: a link in a circle": instead(circle, "findings.json"),
    "report: a pipe": instead(os.mkfifo, "report.html"),
    "report: two gigabytes": instead(sparse(2 << 30), "report.html"),
    "report: a link in a circle": instead(circle, "report.html"),
    "report: no text": instead(lambda path: path.write_bytes(b"\xff" * 1000), "report.html"),
    "states: a pipe": lambda root: (
        manifest(root, status=""),
        (root / "bad" / "runs").mkdir(),
        os.mkfifo(root / "bad" / "runs" / "0.json"),
    )[0],
    "the folder: a link in a circle": lambda root: circle(root / "bad"),
}
HALF = "\ud800".encode("utf-8", "surrogatepass")
NAMES = ["new\nline", "two\n\n<b>lines", EVIL.replace("/", "|"), HALF, b"\xff\xfe",
         "q?a=b&c#d%00", "x" * 250, "\u202eright to left", "'\"`"]  # fmt: skip


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Place]]:
    root = tmp_path_factory.mktemp("runs")
    write_run(root, "good", findings=(finding(),))
    with served(root) as place:
        yield root, place


def look_at_all_pages(place: Place, name: str) -> dict[str, str]:
    """Ask for every page that reads a run; return what was said."""
    address = quote(name, safe="")
    said = {}
    for path in (
        "/runs",
        "/runs?part=all",
        "/claims",
        f"/runs/{address}/",
        f"/runs/{address}/figure?claim=sen",
        f"/live/{address}",
        f"/compare?run=good&run={address}",
    ):
        answer = ask(place, path)
        assert answer.status < 500, (path, answer.text)
        said[path] = answer.text
    for path in ("/runs", "/claims"):
        assert ">good<" in said[path]
        assert "Something broke" not in said[path]
    return said


def clear(root: Path) -> None:
    import shutil

    for folder in os.scandir(os.fsencode(root)):
        if folder.name == b"good":
            continue
        if folder.is_symlink():
            os.unlink(folder.path)
        else:
            shutil.rmtree(folder.path)


@pytest.mark.parametrize("kind", BAD)
def test_one_bad_run_is_one_row(
    room: tuple[Path, Place], kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    root, place = room
    BAD[kind](root)
    try:
        said = look_at_all_pages(place, "bad")
        # It is listed, with what is wrong, or as a folder that is no run.
        assert "bad" in said["/runs"]
        assert "<script>window.hit" not in "".join(said.values())
        assert "onerror='window" not in "".join(said.values())
        if kind.startswith("findings"):
            told_of = ">bad<" if "half letters" in kind else "<li>bad: "
            assert told_of in said["/claims"]
        assert "Traceback" not in capfd.readouterr().err
    finally:
        clear(root)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_can_be_anything_that_a_folder_can_be_called(
    room: tuple[Path, Place], name: str | bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    root, place = room
    folder = os.fsdecode(name)
    try:
        write_run(root, folder, findings=(finding(),))
        shown = folder.encode("utf-8", "replace").decode()
        said = look_at_all_pages(place, shown)
        assert "2 runs in" in said["/runs"]
        if shown != folder:
            assert "is not text" in said["/runs"]
        assert "<script>window.hit" not in "".join(said.values())
        assert "Traceback" not in capfd.readouterr().err
    finally:
        clear(root)


def test_nothing_waits_for_a_pipe_when_a_run_is_drawn(room: tuple[Path, Place]) -> None:
    root, place = room
    manifest(root)
    (root / "bad" / "trajectory.zarr").mkdir()
    os.mkfifo(root / "bad" / "trajectory.zarr" / "zarr.json")
    try:
        for path in ("/live/bad/scene", "/compare/scene?run=good&run=bad"):
            answer = ask(place, path)
            assert answer.status == 200
            assert "sorry" in json.loads(answer.text.splitlines()[-1])
        with pytest.raises(Exception, match="is not an ordinary file"):
            no_way_out(root, root / "bad")
    finally:
        clear(root)


def test_a_folder_that_may_not_be_read_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path, "good")
    write_run(tmp_path, "bad")
    before = entries_module.opened

    def refuse(root: Path, run: Path, *parts: str) -> int:
        if run.name == "bad":
            raise PermissionError(13, "Permission denied")
        return before(root, run, *parts)

    monkeypatch.setattr(entries_module, "opened", refuse)
    runs, _ = entries(tmp_path)
    assert {run.name: run.condition for run in runs} == {"good": "finished", "bad": "unreadable"}
    assert "may not be read (Permission denied)" in next(r for r in runs if r.name == "bad").status


def test_a_manifest_of_the_largest_size_is_read(tmp_path: Path) -> None:
    for name, more in (("fits", 0), ("does-not", 1)):
        path = write_run(tmp_path, name) / "run.json"
        path.write_text(path.read_text().ljust(LARGEST + more))
    runs, _ = entries(tmp_path)
    assert {run.name: run.condition for run in runs} == {
        "fits": "finished",
        "does-not": "unreadable",
    }
