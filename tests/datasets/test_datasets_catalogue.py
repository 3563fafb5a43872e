"""What is said of the published sets."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest

from attnscope.datasets.catalogue import CATALOGUE, DataSet, entry
from attnscope.datasets.record import DataFile
from attnscope.errors import AttnscopeError

SETS = list(CATALOGUE.values())
FILES = [file for dataset in SETS for file in dataset.files]


def test_the_sets_that_the_studies_know() -> None:
    assert list(CATALOGUE) == [
        "sst2",
        "sst5",
        "imdb",
        "ag_news",
        "newsgroups",
        "sms_spam",
        "amazon",
        "yelp",
        "multi30k",
        "iwslt14",
        "news_commentary",
        "wikitext2",
        "pathfinder",
    ]


@pytest.mark.parametrize("dataset", SETS, ids=lambda dataset: dataset.key)
def test_every_set_says_what_a_reader_of_the_list_wants(dataset: DataSet) -> None:
    assert entry(dataset.key) is dataset
    assert urlsplit(dataset.published).scheme in ("http", "https")
    assert dataset.licence
    assert dataset.citation
    assert bool(dataset.files) == (dataset.kind != "generated")
    assert dataset.classes if dataset.kind == "labelled" else True
    assert len(set(dataset.classes)) == len(dataset.classes)
    assert set(dataset.expected) <= {"train", "dev", "test"}
    # What cannot be fetched automatically says why.
    if not all(file.url for file in dataset.files):
        assert "Not fetched automatically" in dataset.note


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path)
def test_every_file_is_well_formed(file: DataFile) -> None:
    for path in (file.path, *file.alternatives):
        assert not PurePosixPath(path).is_absolute()
        assert ".." not in PurePosixPath(path).parts
        assert "\\" not in path
    assert urlsplit(file.url).scheme in ("http", "https", "")
    assert file.split in ("train", "dev", "test", "")
    assert bool(file.split) != bool(file.split_rows)
    assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)
    counts = [rows for _, rows in file.split_rows]
    if file.rows is not None and counts:
        assert sum(rows or 0 for rows in counts) == file.rows


def test_no_two_files_lie_at_the_same_place() -> None:
    places = [file.path for file in FILES]
    assert len(set(places)) == len(places)


def test_sides_of_parallel_text_have_the_same_rows() -> None:
    for dataset in SETS:
        for split in dataset.expected:
            sides = [file for file in dataset.files if file.split == split]
            assert len({file.rows for file in sides}) <= 1
            if dataset.kind == "parallel":
                assert len({file.language for file in sides}) == len(sides)


def test_rows_by_split() -> None:
    assert entry("sst2").expected == {"train": 6920, "dev": 872, "test": 1821}
    assert entry("imdb").expected == {"train": 25000, "test": 25000}
    assert entry("multi30k").expected == {"train": 29000, "dev": 1014, "test": 1000}
    assert entry("yelp").expected == {"train": None}
    assert entry("pathfinder").expected == {}


@pytest.mark.parametrize(
    ("path", "url", "saved"),
    [
        ("a/train.de", "https://x/train.de.gz", "a/train.de.gz"),
        ("a/train.de", "https://x/train.de.xz", "a/train.de.xz"),
        ("a/all.tar.gz", "https://x/all.tar.gz", "a/all.tar.gz"),
        ("a/train.csv", "https://x/train.csv", "a/train.csv"),
    ],
)
def test_a_download_keeps_the_packing_of_its_publisher(path: str, url: str, saved: str) -> None:
    assert DataFile(path, "train", url).saved_as == saved


def test_an_unknown_name_says_which_is_near() -> None:
    with pytest.raises(
        AttnscopeError, match=r"no data set 'sst'\. Did you mean 'sst\d'\? Expected"
    ):
        entry("sst")
