"""How well attention and lexical knowledge find the words that people aligned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from attnscope.probes.lexicon.aligned_pieces import AlignedPieces, read_aligned_pieces
from attnscope.studies.snell2021.agreement.evidence import Evidence
from attnscope.studies.snell2021.agreement.gold import gold_table
from attnscope.tasks.parallel_pieces import PiecePairs
from attnscope.tasks.pieces import Pieces, trained_pieces
from attnscope.tasks.sequence_pairs import END
from attnscope.trajectory import Readings

GERMAN = ("das haus", "ein haus", "der alte mann", "das alte haus", "ein mann")
ENGLISH = ("the house", "a house", "the old man", "the old house", "a man")


@pytest.fixture
def pieces(tmp_path: Path) -> Pieces:
    return trained_pieces([*GERMAN, *ENGLISH] * 3, 26, folder=tmp_path / "kept")


@pytest.fixture
def gold(tmp_path: Path, pieces: Pieces) -> AlignedPieces:
    texts, links = tmp_path / "gold.txt", tmp_path / "gold.links"
    texts.write_text("das alte mannhaus ||| the old house\nein mann ||| man a\n")
    links.write_text("1-1 2-2 3p3\n1-2 2-1\n")
    return read_aligned_pieces(f"{texts}:{links}", pieces)


def perfect(gold: AlignedPieces) -> list[np.ndarray]:
    """Return weights of 1 for pieces of words that are linked, and some at the end for ends."""
    tables = []
    for pair, (source, target) in enumerate(zip(gold.source_words, gold.target_words, strict=True)):
        links = gold.alignments.sure[pair] | gold.alignments.possible[pair]
        tables.append(np.array([[float((s, t) in links) for s in source] for t in target]))
    return tables


def test_the_table_reads_each_run_in_its_part(gold: AlignedPieces, pieces: Pieces) -> None:
    tables = perfect(gold)
    right = np.concatenate([table.ravel() for table in tables])
    wrong = 1 - right
    nothing = np.full_like(right, np.nan)
    alpha = np.stack([right, right, wrong, nothing])
    lexical = np.log(np.stack([wrong, wrong, right, right]) + 1e-9)
    observables = xr.Dataset(
        {
            "alpha_gold": (("run", "end", "cell_gold"), np.stack([wrong + 0 * alpha, alpha], 1)),
            "lexical_gold": (("run", "end", "cell_gold"), np.stack([lexical * 0, lexical], 1)),
        },
        coords={
            "case": ("run", ["normal", "normal", "uniform", "proxy"]),
            "time": ("step", [0.0]),
        },
    )
    lengths = {"length_dev": ("row_dev", [2])}
    data = xr.Dataset({"word": ("id", list(pieces.words)), **lengths}, attrs={"kind": "parallel"})
    tree = xr.DataTree.from_dict({"/observables": observables, "/data": data})
    train = PiecePairs(
        *([np.append(ids, END) for ids in pieces.encode(side)] for side in (GERMAN, ENGLISH))
    )
    table = gold_table(gold, Evidence(Readings(tree)), train)
    rates = {str(name).split(",")[0]: rate for name, rate, _ in table.rows}
    assert rates["attention α"] == 0.0
    assert rates["lexical probe β"] > 50
    assert rates["lexical probe β^uf"] == rates["lexical probe β^px"] == 0.0
    # The diagonal has the first pair right and the second wrong.
    assert rates["diagonal"] == pytest.approx(round(100 * (1 - (2 + 3) / (5 + 4)), 2))
    assert 0 <= float(rates["IBM Model 1"]) < 100  # type: ignore[arg-type]
