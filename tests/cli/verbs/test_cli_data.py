"""``attnscope data``: the list, one set, check and get."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from attnscope.cli import main
from attnscope.datasets.catalogue import CATALOGUE, entry
from attnscope.datasets.record import DataFile

Capture = pytest.CaptureFixture[str]
ROWS = {"train": "0 bad .\n1 good .\n", "dev": "1 fine .\n", "test": "0 poor .\n"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "data"
    monkeypatch.setenv("ATTNSCOPE_DATA", str(data))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return data


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Publish a small SST-2 on loopback; give the folder it is served from."""
    published = tmp_path / "published"
    published.mkdir()
    handler = functools.partial(_Silent, directory=str(published))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        files = []
        for split, text in ROWS.items():
            (published / split).write_text(text)
            url = f"http://127.0.0.1:{server.server_address[1]}/{split}"
            files.append(DataFile(f"sst/{split}", split, url, rows=text.count("\n")))
        monkeypatch.setitem(CATALOGUE, "sst2", replace(entry("sst2"), files=tuple(files)))
        yield published
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("columns", ["80", "140"])
def test_the_list(columns: str, folder: Path, capsys: Capture, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    (folder / "imdb" / "aclImdb").mkdir(parents=True)
    assert main(["data"]) == 0
    out = capsys.readouterr().out
    for dataset in CATALOGUE.values():
        assert dataset.key in out
        assert dataset.title in out
        # Whole, so that it can be copied.
        assert dataset.published in out
        assert dataset.licence in out
    assert "6,920 / 872 / 1,821" in out
    assert f"Data folder: {folder}" in out
    if columns == "80":
        addresses = [line for line in out.splitlines() if "://" in line or "folder" in line]
        rest = [line for line in out.splitlines() if line not in addresses]
        assert max(map(len, rest)) <= 80


def test_the_list_says_what_is_here(folder: Path, capsys: Capture) -> None:
    def put(path: str) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"")

    for split in ("train", "dev", "test"):
        put(f"sst/stsa/stsa.binary.{split}.gz")
    put("sst/stsa/stsa.fine.dev")
    put("imdb/aclImdb_labeled.tar.xz")
    assert main(["data"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ends = {line.split()[0]: line for line in lines if line.split() and line[0] != " "}
    assert ends["sst2"].endswith("  yes")
    assert ends["sst5"].endswith("  1 of 3")
    assert ends["imdb"].endswith("  other form")
    assert ends["yelp"].endswith("  no")
    assert ends["pathfinder"].endswith("  generated")


@pytest.mark.parametrize("name", CATALOGUE)
def test_one_set(name: str, capsys: Capture) -> None:
    assert main(["data", name]) == 0
    out = capsys.readouterr().out
    dataset = entry(name)
    assert out.startswith(f"{dataset.title} ({name})")
    words = " ".join(out.split())
    assert " ".join(dataset.citation.split()) in words
    assert " ".join(dataset.note.split()) in words
    for file in dataset.files:
        assert file.path in out
        assert file.url in out


def test_the_list_and_one_set_as_json(folder: Path, capsys: Capture) -> None:
    assert main(["data", "--json"]) == 0
    told = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(told) == list(CATALOGUE)
    assert told["sst2"]["rows"] == {"train": 6920, "dev": 872, "test": 1821}
    assert (told["sst2"]["here"], told["pathfinder"]["here"]) == ("no", "generated")
    assert main(["data", "sst2", "--json"]) == 0
    assert [file["split"] for file in json.loads(capsys.readouterr().out)["files"]] == [
        *("train", "dev", "test")
    ]


def test_get_then_check(small: Path, folder: Path, capsys: Capture) -> None:
    assert main(["data", "get", "sst2"]) == 0
    out = capsys.readouterr().out
    assert "licence as stated there: none stated" in out
    assert out.count("fetched: ") == 3
    assert "SST-2 is complete." in out
    assert (folder / "sst" / "train").read_text() == ROWS["train"]
    assert main(["data", "check", "sst2"]) == 0
    out = capsys.readouterr().out
    assert "negative 1, positive 1" in out
    assert "SST-2 is complete." in out
    assert main(["data", "get", "sst2"]) == 0
    assert "nothing to fetch: the files are here" in capsys.readouterr().out


def test_the_folder_of_the_flag_wins(small: Path, tmp_path: Path, folder: Path) -> None:
    other = tmp_path / "other"
    assert main(["data", "get", "--data-dir", str(other), "sst2"]) == 0
    assert sorted(path.name for path in (other / "sst").glob("*[!6]")) == ["dev", "test", "train"]
    assert not folder.exists()
    assert main(["data", "check", "sst2", "--data-dir", str(other)]) == 0


def test_get_of_a_file_that_has_moved(small: Path, capsys: Capture) -> None:
    (small / "dev").unlink()
    assert main(["data", "get", "sst2"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("attnscope: http://127.0.0.1:")
    assert "answered 404" in err


def test_check_of_a_partial_set(small: Path, folder: Path, capsys: Capture) -> None:
    main(["data", "get", "sst2"])
    files = tuple(replace(file, rows=9) for file in entry("sst2").files)
    CATALOGUE["sst2"] = replace(entry("sst2"), files=files)
    capsys.readouterr()
    assert main(["data", "check", "sst2"]) == 0
    out = capsys.readouterr().out
    assert "SST-2 is partial (train 2 of 9, dev 1 of 9, test 1 of 9): it can be used" in out


def put(path: Path, text: str) -> None:
    """Put a file in the place of one that was downloaded, as a person who has another would."""
    path.write_text(text)
    path.with_name(f"{path.name}.sha256").unlink()


def test_check_of_a_file_that_has_changed_since(small: Path, folder: Path, capsys: Capture) -> None:
    main(["data", "get", "sst2"])
    assert "SHA-256 as at the first download" in capsys.readouterr().out
    (folder / "sst" / "dev").write_text(ROWS["dev"] + "1 one more .\n")
    assert main(["data", "check", "sst2"]) == 2
    assert "when it was first downloaded" in capsys.readouterr().err


def test_check_of_a_wrong_set(small: Path, folder: Path, capsys: Capture) -> None:
    main(["data", "get", "sst2"])
    put(folder / "sst" / "dev", "1 fine .\n0 too many .\n")
    capsys.readouterr()
    assert main(["data", "check", "sst2"]) == 2
    captured = capsys.readouterr()
    assert "wrong" in captured.out
    assert captured.err.startswith(
        "attnscope: SST-2 is not as published: the split dev has 2 rows, 1 were published."
    )


def test_check_says_what_was_left_out(small: Path, folder: Path, capsys: Capture) -> None:
    main(["data", "get", "sst2"])
    put(folder / "sst" / "train", "0 bad .\n1 good .\n1 \n")
    capsys.readouterr()
    assert main(["data", "check", "sst2"]) == 0
    assert "left out of train: 1 (empty text)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["check"], "`attnscope data check` needs a name."),
        (["get"], "`attnscope data get` needs a name."),
        (["check", "sst"], "there is no data set 'sst'. Did you mean"),
        (["chekc", "sst2"], "`attnscope data chekc sst2` is not understood."),
        (["get", "sst2", "imdb"], "`attnscope data get sst2 imdb` is not understood."),
        (["imbd"], "there is no data set 'imbd'. Did you mean 'imdb'?"),
        (["check", "sst5"], "SST-5 is not in '"),
        (["get", "yelp"], "Yelp Open Dataset cannot be fetched. Not fetched automatically"),
        (["get", "pathfinder"], "Pathfinder cannot be fetched. Its images are drawn"),
        (["check", "pathfinder"], "Pathfinder has no files."),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    words: list[str], sentence: str, capsys: Capture
) -> None:
    assert main(["data", *words]) == 2
    assert capsys.readouterr().err.startswith(f"attnscope: {sentence}")


def test_help(capsys: Capture) -> None:
    assert main(["data", "--help"]) == 0
    out = capsys.readouterr().out
    assert "usage: attnscope data" in out
    assert "attnscope data get NAME" in out


def test_nothing_heavy_is_imported_to_list() -> None:
    code = (
        "import sys\nfrom attnscope.cli import main\nmain(['data'])\nmain(['data', 'imdb'])\n"
        "heavy = ('torch', 'numpy', 'xarray', 'zarr', 'scipy', 'tyro', 'bokeh')\n"
        "print('HEAVY', [m for m in heavy if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_a_sheet_of_pathfinder_images(tmp_path: Path, capsys: Capture) -> None:
    sheet = tmp_path / "sheet.png"
    assert main(["data", "pathfinder", "--sheet", str(sheet)]) == 0
    assert sheet.read_bytes().startswith(b"\x89PNG")
    assert "connected on the right" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sst2", "--sheet", "a.png"], "only its images are drawn here"),
        (["--sheet", "a.png"], "expected `attnscope data pathfinder"),
        (["pathfinder", "--sheet", "a.jpg"], "a file name that ends with .png"),
        (["pathfinder", "--sheet", "no/such/a.png"], "expected a folder that exists"),
    ],
)
def test_bad_sheets(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["data", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
