"""The published tables: what they say of each other, and some values."""

from __future__ import annotations

import pytest

from attnscope.studies.snell2021.agreement.paper import FOUR, TABLES, TASKS, Xi, published

TABLE_2 = """
IMDB        | 53 82 62 60 5 | 87 87 90
AG News     | 39 55 43 48 6 | 94 95 96
20 NG       | 65 41 65 63 5 | 91 85 94
SST         | 20 34 22 25 8 | 78 82 84
Multi30k    | 31 34 27 49 7 | 43 49 66
IWSLT14     | 36 39 28 55 7 | 36 44 67
News It-Pt  | 29 39 25 52 6 | 22 25 55
"""
"""Agreements, Â, ξ of the first and the last of them, and ξ*, in whole percent."""


def nearest(value: float) -> int:
    return int(value + 0.5)


def test_table_2_is_table_5_rounded() -> None:
    for line in TABLE_2.strip().splitlines():
        task, left, right = line.split("|")
        full = TABLES[5][task.strip()]
        *agreements, baseline = map(int, left.split())
        *xi, final = map(int, right.split())
        assert [nearest(full.agreement[name]) for name in FOUR] == agreements
        assert [nearest(full.xi[name].value) for name in ("alpha_uf", "alpha_beta")] == xi
        assert (nearest(full.baseline or 0), nearest(full.final or 0)) == (baseline, final)
    assert len(TABLE_2.strip().splitlines()) == 7


def test_the_right_column_of_table_10_is_table_5_rounded() -> None:
    for task, row in TABLES[10].items():
        assert row.agreement["alpha_uf"] == nearest(TABLES[5][task].agreement["alpha_uf"])
        assert row.agreement["alpha_fr"] < row.agreement["alpha_uf"]


@pytest.mark.parametrize(
    ("number", "rows"), [(3, 11), (4, 5), (5, 11), (6, 5), (7, 11), (8, 5), (10, 6)]
)
def test_tables_have_their_rows(number: int, rows: int) -> None:
    assert len(TABLES[number]) == rows
    assert {row.table for row in TABLES[number].values()} == {number}


def test_an_asterisk_stands_at_the_final_performance() -> None:
    starred = [
        (number, task, name)
        for number in range(3, 9)
        for task, row in TABLES[number].items()
        for name, xi in row.xi.items()
        if not xi.reached
    ]
    assert [(number, task) for number, task, _ in starred] == [
        (3, "SST"),
        (5, "AG News"),
        (5, "SST"),
        (5, "Amzn"),
        (7, "IMDB"),
        (7, "AG News"),
        (7, "SST"),
        (7, "SST"),
        (7, "Amzn"),
    ]
    for number, task, name in starred:
        row = TABLES[number][task]
        assert row.xi[name].value == row.final


@pytest.mark.parametrize(
    ("number", "agreements", "final"),
    [
        (3, 532.22, 869.64),
        (4, 149.61, 162.01),
        (5, 1984.86, 869.64),
        (6, 779.6, 162.01),
        (7, 2016.67, 977.67),
        (8, 513.99, 216.88),
    ],
)
def test_columns_add_up(number: int, agreements: float, final: float) -> None:
    rows = TABLES[number].values()
    assert sum(sum(row.agreement.values()) for row in rows) == pytest.approx(agreements, abs=1e-6)
    assert sum(row.final or 0 for row in rows) == pytest.approx(final, abs=1e-6)


def test_a_row_is_found_by_the_key_of_the_catalogue() -> None:
    row = published("sst2")
    assert row is not None
    assert row == published("sst") == published("SST")
    assert dict(row.agreement) == {
        "alpha_uf": 19.85,
        "uf_px": 33.57,
        "delta_uf": 22.45,
        "alpha_beta": 25.33,
    }
    assert (row.baseline, row.final) == (8.39, 83.53)
    assert row.xi["uf_px"] == Xi(83.53, reached=False)
    assert row.xi["alpha_beta"] == Xi(82.38)
    translated = published("multi30k", 6)
    assert translated is not None
    assert (translated.table, translated.final) == (6, 37.89)
    trained = published("multi30k", 8)
    assert trained is not None
    assert (trained.table, trained.final) == (8, 52.28)
    ranked = published("iwslt14", 3)
    assert ranked is not None
    assert ranked.agreement["delta_uf"] == 2.72
    frozen = published("amazon", 10)
    assert frozen is not None
    assert frozen.agreement["alpha_fr"] == 15


def test_what_the_paper_has_not_is_none() -> None:
    assert published("sms_spam") is None
    assert published("own.csv") is None
    assert published("sst2", 6) is None  # BLEU is of translation
    assert published("multi30k", 10) is None  # Table 10 is of classification


def test_an_asterisk_is_for_what_is_never_reached() -> None:
    assert str(Xi(83.5)) == "83.50"
    assert str(Xi(84.0, reached=False)) == "84.00*"


def test_every_task_of_table_5_but_two_has_a_key() -> None:
    assert set(TABLES[5]) - set(TASKS.values()) == {"News It-Pt", "News En-Pt"}
