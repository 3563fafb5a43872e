"""Whether what is there is what was published."""

from __future__ import annotations

import gzip
import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from attnscope.datasets.catalogue import CATALOGUE, DataSet, entry
from attnscope.datasets.check import SplitReport, check, file_problem
from attnscope.datasets.place import locate
from attnscope.datasets.record import DataFile
from attnscope.errors import AttnscopeError

TRAIN = b"0 a bad film .\n1 a good film .\n1 a very good film .\n"
DEV = b"0 bad .\n1 good .\n"
TEST = b"1 fine .\n0 \n0 poor .\n"


def known(path: str, split: str, content: bytes, rows: int) -> DataFile:
    digest = hashlib.sha256(content).hexdigest()
    return DataFile(path, split, rows=rows, size=len(content), sha256=digest)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Put a small SST-2 into the catalogue and into the folder."""
    files = (
        known("sst/train", "train", TRAIN, 3),
        known("sst/dev", "dev", DEV, 2),
        known("sst/test", "test", TEST, 3),
    )
    dataset = replace(entry("sst2"), files=files)
    monkeypatch.setitem(CATALOGUE, "sst2", dataset)
    (tmp_path / "sst").mkdir()
    (tmp_path / "sst" / "train").write_bytes(TRAIN)
    (tmp_path / "sst" / "dev.gz").write_bytes(gzip.compress(DEV))
    (tmp_path / "sst" / "test").write_bytes(TEST)
    return dataset


def test_a_complete_set(small: DataSet, tmp_path: Path) -> None:
    report = check(small, tmp_path)
    assert report.verdict == "complete"
    assert report.problems == ()
    assert [item.problem for item in report.files] == ["", "", ""]
    assert all(item.published for item in report.files)
    train, dev, test = report.splits
    assert (train.split, train.rows, train.classes) == ("train", 3, {"negative": 1, "positive": 2})
    assert (dev.rows, dev.expected, dev.verdict) == (2, 2, "complete")
    # A row that the reader leaves out on purpose is not missing.
    assert (test.rows, test.skipped, test.verdict) == (2, {"empty text": 1}, "complete")


def test_a_partial_set_can_be_used(small: DataSet, tmp_path: Path) -> None:
    files = tuple(replace(file, rows=file.rows and file.rows + 5) for file in small.files)
    report = check(replace(small, files=files), tmp_path)
    assert report.problems == ()
    assert report.verdict == "partial"
    assert {split.verdict for split in report.splits} == {"partial"}


def test_a_set_without_published_counts(small: DataSet, tmp_path: Path) -> None:
    files = tuple(replace(file, rows=None) for file in small.files)
    assert check(replace(small, files=files), tmp_path).verdict == "uncounted"


def test_too_many_rows_are_wrong(small: DataSet, tmp_path: Path) -> None:
    files = tuple(replace(file, rows=1) for file in small.files)
    report = check(replace(small, files=files), tmp_path)
    assert report.verdict == "wrong"
    assert report.problems[0] == "the split train has 3 rows, 1 were published"


@pytest.mark.parametrize("path", ["sst/train", "sst/dev.gz"])
def test_a_changed_file_is_named_and_the_rows_are_counted_all_the_same(
    small: DataSet, tmp_path: Path, path: str
) -> None:
    changed = tmp_path / path
    content = changed.read_bytes()
    inside = gzip.decompress(content) if path.endswith("gz") else content
    inside = inside.replace(b"good", b"food")
    changed.write_bytes(gzip.compress(inside) if path.endswith("gz") else inside)
    report = check(small, tmp_path)
    assert report.verdict == "wrong"
    (problem,) = report.problems
    assert problem.startswith(f"'{changed}': its SHA-256 is {hashlib.sha256(inside).hexdigest()}")
    assert [split.rows for split in report.splits] == [3, 2, 2]


def test_a_truncated_packed_file(small: DataSet, tmp_path: Path) -> None:
    packed = tmp_path / "sst" / "dev.gz"
    packed.write_bytes(packed.read_bytes()[:-9])
    report = check(small, tmp_path)
    assert report.verdict == "wrong"
    assert len(report.problems) == 2
    assert all("dev.gz" in problem for problem in report.problems)
    assert report.splits == ()


def test_missing_files_say_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="run `attnscope data get sst5`"):
        check(entry("sst5"), tmp_path)


def test_nothing_is_known_of_an_alternative(tmp_path: Path) -> None:
    file = replace(known("set/all.csv", "train", b"x", 1), alternatives=("set/part.csv",))
    other = tmp_path / "part.csv"
    other.write_bytes(b"other")
    assert file_problem(file, other, other.name) == ""
    assert file_problem(file, other, "all.csv") == "it has 5 bytes, 1 were published"


@pytest.mark.parametrize(
    ("rows", "expected", "skipped", "verdict"),
    [
        (5, 5, {}, "complete"),
        (4, 5, {"blank": 1}, "complete"),
        (5, 5, {"unlabelled": 50}, "complete"),
        (3, 5, {"blank": 1}, "partial"),
        (6, 5, {}, "wrong"),
        (6, None, {}, "uncounted"),
        (0, None, {}, "partial"),
    ],
)
def test_verdict_of_a_split(
    rows: int, expected: int | None, skipped: dict[str, int], verdict: str
) -> None:
    assert SplitReport("train", rows, expected, {}, skipped).verdict == verdict


def test_parallel_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tuple(
        DataFile(f"m/{split}.{language}", split, rows=rows, language=language)
        for split, rows in (("dev", 2), ("train", 4))
        for language in ("de", "en")
    )
    dataset = replace(entry("multi30k"), files=files)
    monkeypatch.setitem(CATALOGUE, "multi30k", dataset)
    (tmp_path / "m").mkdir()
    for file in files:
        (tmp_path / file.path).write_text("ja .\nnein .\n")
    report = check(dataset, tmp_path)
    assert [(split.split, split.rows, split.verdict) for split in report.splits] == [
        ("train", 2, "partial"),
        ("dev", 2, "complete"),
    ]


def test_documents_of_which_a_split_is_missing(tmp_path: Path) -> None:
    (tmp_path / "wikitext2").mkdir()
    article = " \n = Title = \n \n Some words . \n"
    with zipfile.ZipFile(tmp_path / "wikitext2" / "wikitext-2-v1.zip", "w") as archive:
        archive.writestr("wikitext-2/wiki.train.tokens", article * 3)
        archive.writestr("wikitext-2/wiki.valid.tokens", article)
    report = check(entry("wikitext2"), tmp_path)
    assert [(split.split, split.rows, split.verdict) for split in report.splits] == [
        ("train", 3, "uncounted"),
        ("dev", 1, "uncounted"),
        ("test", 0, "partial"),
    ]


@pytest.mark.parametrize(
    ("key", "rows"),
    [("sst2", [6920, 872, 1821]), ("sst5", [8544, 1101, 2210]), ("multi30k", [29000, 1014, 1000])],
)
def test_the_published_files_themselves(key: str, rows: list[int], real_data: Path) -> None:
    if any(locate(file, real_data) is None for file in entry(key).files):
        pytest.skip(f"{key} is not in '{real_data}': `attnscope data get {key}` fetches it")
    report = check(entry(key), real_data)
    assert report.problems == ()
    assert [split.rows for split in report.splits] == rows
    assert report.verdict == "complete"
