from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from attnscope.datasets.catalogue import CATALOGUE
from attnscope.datasets.load import documents, labelled, parallel, parallel_files
from attnscope.errors import AttnscopeError


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_a_published_set_by_its_key(tmp_path: Path) -> None:
    for split, text in (("train", "0 bad\n1 good\n"), ("dev", "1 fine\n"), ("test", "0 poor\n")):
        _write(tmp_path / "sst" / "stsa" / f"stsa.binary.{split}.gz", text)
    data = labelled("sst2", data_dir=tmp_path)
    assert (data.name, data.classes) == ("sst2", ("negative", "positive"))
    assert {name: split.texts for name, split in data.splits.items()} == {
        "train": ["bad", "good"],
        "dev": ["fine"],
        "test": ["poor"],
    }


def test_every_set_has_a_reader(tmp_path: Path) -> None:
    for key, dataset in CATALOGUE.items():
        if dataset.kind == "labelled":
            with pytest.raises(AttnscopeError, match=f"^{dataset.title} is not in"):
                labelled(key, data_dir=tmp_path)
        elif dataset.kind == "parallel":
            with pytest.raises(AttnscopeError, match=f"^{dataset.title} is not in"):
                parallel(key, data_dir=tmp_path)
        elif dataset.kind == "documents":
            with pytest.raises(AttnscopeError, match=f"^{dataset.title} is not in"):
                documents(key, data_dir=tmp_path)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = _write(tmp_path / "own.tsv.gz", "neg\tbad\npos\tgood\n")
    data = labelled(str(path))
    assert (data.name, data.classes, list(data.splits)) == (str(path), ("neg", "pos"), ["train"])


def test_a_folder_of_tables(tmp_path: Path) -> None:
    _write(tmp_path / "test.tsv", "label\ttext\na\tfour\n")
    _write(tmp_path / "train.csv.gz", "a,one\nb,two\n")
    _write(tmp_path / "dev.csv", "text,label\nthree,b\n")
    _write(tmp_path / "notes.txt", "nothing")
    data = labelled(tmp_path)
    assert list(data.splits) == ["train", "dev", "test"]
    assert [split.labels.tolist() for split in data.splits.values()] == [[0, 1], [1], [0]]
    _write(tmp_path / "train.tsv", "a\tone\n")
    with pytest.raises(AttnscopeError, match=r"has train\.csv\.gz and train\.tsv: expected one"):
        labelled(tmp_path)


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="has no training table"):
        labelled(tmp_path)
    with pytest.raises(AttnscopeError, match=r"own\.txt' is named neither \.csv nor \.tsv"):
        labelled(_write(tmp_path / "own.txt", "a,b\n"))
    with pytest.raises(AttnscopeError, match=r"all 2 training texts of .* have the label 'a'"):
        labelled(_write(tmp_path / "one.csv", "a,one\na,two\n"))
    with pytest.raises(AttnscopeError, match=r"'sst3' is neither a labelled.*mean 'sst5'"):
        labelled("sst3")
    with pytest.raises(AttnscopeError, match="'multi30k' is of the kind parallel, not labelled"):
        labelled("multi30k")


def test_two_aligned_files(tmp_path: Path) -> None:
    source = _write(tmp_path / "a:b" / "corpus.de.gz", "eins\n\ndrei\n")
    target = _write(tmp_path / "a:b" / "corpus.en", "one\ntwo\nthree\n")
    for data in (parallel_files(source, target), parallel(f"{source}:{target}")):
        assert data.name == f"{source}:{target}"
        assert data.languages == ("de", "en")
        assert data.splits == {"train": (["eins", "drei"], ["one", "three"])}
        assert data.skipped == {"pair with an empty side": 1}


@pytest.mark.parametrize("data", ["none.de:none.en", "none", "sst2"])
def test_pairs_that_are_not_there(data: str) -> None:
    with pytest.raises(AttnscopeError, match=r"Expected one of multi30k, .*SOURCE:TARGET"):
        parallel(data)


def test_published_pairs_join_their_byte_pairs(tmp_path: Path) -> None:
    folder = tmp_path / "iwslt14_de_en"
    for name in ("train", "valid", "test"):
        _write(folder / f"{name}.de", "ka@@ p\n")
        _write(folder / f"{name}.en.gz", "ca@@ pe\n")
    data = parallel("iwslt14", data_dir=tmp_path)
    assert data.languages == ("de", "en")
    assert data.splits == dict.fromkeys(("train", "dev", "test"), (["kap"], ["cape"]))


def test_published_pairs_in_one_file(tmp_path: Path) -> None:
    (file,) = CATALOGUE["news_commentary"].files
    _write(tmp_path / f"{file.path}.gz", "yes\tja\n")
    data = parallel("news_commentary", data_dir=tmp_path)
    assert "-".join(data.languages) == file.language
    assert data.splits == {"train": (["yes"], ["ja"])}


def test_documents_of_ones_own(tmp_path: Path) -> None:
    data = documents(_write(tmp_path / "own.txt.gz", "one two\n\nthree\n"))
    assert data.splits == {"train": ["one two", "three"]}
    assert data.skipped == {"blank line": 1}
    with pytest.raises(AttnscopeError, match=r"Expected one of wikitext2, or a text file"):
        documents(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("sst2", {"train": 6920, "dev": 872, "test": 1821}),
        ("sst5", {"train": 8544, "dev": 1101, "test": 2210}),
        ("ag_news", {"test": 7600}),
    ],
)
def test_labelled_sets_as_published(real_data: Path, key: str, rows: dict[str, int]) -> None:
    data = labelled(key, data_dir=_have(real_data, key))
    assert {name: len(data.splits[name]) for name in rows} == rows
    assert all(split.skipped == {} for split in data.splits.values())
    assert set(data.splits["test"].labels.tolist()) == set(range(len(data.classes)))


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("multi30k", {"train": 29000, "dev": 1014, "test": 1000}),
        ("iwslt14", {"dev": 7283, "test": 6750}),
    ],
)
def test_parallel_sets_as_published(real_data: Path, key: str, rows: dict[str, int]) -> None:
    data = parallel(key, data_dir=_have(real_data, key))
    assert {name: len(data.splits[name][0]) for name in rows} == rows
    assert data.languages == ("de", "en")
    assert data.skipped == {}


def test_documents_as_published(real_data: Path) -> None:
    data = documents("wikitext2", data_dir=_have(real_data, "wikitext2"))
    assert len(data.splits["train"]) >= 600
    assert data.skipped == {}


def _have(folder: Path, key: str) -> Path:
    places = {file.path.partition("/")[0] for file in CATALOGUE[key].files}
    if not all((folder / place).is_dir() for place in places):
        pytest.skip(f"{key} is not here: set ATTNSCOPE_DATA or run `attnscope data get {key}`")
    return folder
