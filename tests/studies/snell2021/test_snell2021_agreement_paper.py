"""The published tables: what they say of each other, and some values."""

from __future__ import annotations

import pytest

from attnscope.studies.snell2021._agreement_paper import (
    ALPHA_BETA,
    ALPHA_FR,
    ALPHA_UF,
    DELTA_UF,
    TABLES,
    TASKS,
    UF_PX,
    PublishedXi,
    published,
    published_frozen,
)


def nearest(value: float) -> int:
    return int(value + 0.5)


def test_table_2_is_table_5_rounded() -> None:
    for task, row in TABLES[2].items():
        full = TABLES[5][task]
        assert {name: nearest(value) for name, value in full.agreement.items()} == row.agreement
        assert {name: nearest(full.xi[name].value) for name in row.xi} == {
            name: xi.value for name, xi in row.xi.items()
        }
        assert (nearest(full.baseline or 0), nearest(full.final or 0)) == (row.baseline, row.final)


def test_the_right_column_of_table_10_is_table_5_rounded() -> None:
    for task, row in TABLES[10].items():
        assert row.agreement[ALPHA_UF] == nearest(TABLES[5][task].agreement[ALPHA_UF])
        assert row.agreement[ALPHA_FR] < row.agreement[ALPHA_UF]


@pytest.mark.parametrize(("number", "rows"), [(2, 7), (3, 11), (4, 5), (5, 11), (6, 5), (7, 11)])
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
        ALPHA_UF: 19.85,
        UF_PX: 33.57,
        DELTA_UF: 22.45,
        ALPHA_BETA: 25.33,
    }
    assert (row.baseline, row.final) == (8.39, 83.53)
    assert row.xi[UF_PX] == PublishedXi(83.53, reached=False)
    assert row.xi[ALPHA_BETA] == PublishedXi(82.38)
    translated = published("multi30k", performance="bleu")
    assert translated is not None
    assert (translated.table, translated.final) == (6, 37.89)
    trained = published("multi30k", "train", performance="bleu")
    assert trained is not None
    assert (trained.table, trained.final) == (8, 52.28)
    ranked = published("iwslt14", by="tau")
    assert ranked is not None
    assert ranked.agreement[DELTA_UF] == 2.72
    frozen = published_frozen("amazon")
    assert frozen is not None
    assert frozen.agreement[ALPHA_FR] == 15


def test_what_the_paper_has_not_is_none() -> None:
    assert published("sms_spam") is None
    assert published("own.csv") is None
    assert published("sst2", "train", "tau") is None  # no table of τ on training data
    assert published("sst2", performance="bleu") is None
    assert published_frozen("multi30k") is None  # Table 10 is of classification


def test_every_task_of_table_5_but_two_has_a_key() -> None:
    assert set(TABLES[5]) - set(TASKS.values()) == {"News It-Pt", "News En-Pt"}
