"""Tables, claims and figures of the agreement study, on a made-up trajectory of either kind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from _agreement_tree import STEPS, make

from attnscope.claims import Finding, examine
from attnscope.probes.lexicon.agreement import mean_defined
from attnscope.probes.lexicon.kendall import kendall_tau
from attnscope.report.figure import Dots, Histogram, Line
from attnscope.report.page import Table
from attnscope.studies.snell2021.agreement import figures
from attnscope.studies.snell2021.agreement.claims import claims_of, lag
from attnscope.studies.snell2021.agreement.evidence import Evidence, evidence
from attnscope.studies.snell2021.agreement.paper import FOUR, NAMES
from attnscope.studies.snell2021.agreement.tables import tables_of
from attnscope.trajectory import Readings

pytestmark = pytest.mark.xdist_group("snell2021 agreement report")  # trees are made once

KINDS = {"labelled": "sst2", "parallel": "multi30k"}


def spec(data: str, convention: str = "paper") -> Any:
    return SimpleNamespace(data=data, sentence=3, convention=convention, gold="")


@pytest.fixture(scope="module", params=KINDS)
def seen(request: pytest.FixtureRequest) -> tuple[Any, Readings]:
    return spec(KINDS[request.param]), Readings(make(request.param).tree)


@pytest.fixture(scope="module")
def tables(seen: tuple[Any, Readings]) -> dict[str, Table]:
    return {table.name: table for table in tables_of(*seen)}


@pytest.fixture(scope="module")
def found(seen: tuple[Any, Readings]) -> dict[str, Finding]:
    study, run = seen
    return {claim.key: examine(claim, run) for claim in claims_of(study)}


def test_evidence_is_kept_for_the_same_tree_only(seen: tuple[Any, Readings]) -> None:
    tree = seen[1].tree
    first = evidence(Readings(tree))
    assert evidence(Readings(tree)) is first
    assert evidence(Readings(tree.copy())) is not first


def test_tau_in_parts_is_tau(seen: tuple[Any, Readings]) -> None:
    looked = Evidence(seen[1])
    u, v = looked.alpha, looked.beta_uf
    by_row = kendall_tau(u, v, looked.cells.mask)
    assert looked.tau(u, v) == pytest.approx(100 * mean_defined(by_row).value, rel=1e-12)
    ends = mean_defined(by_row[[0, -1]]).value
    assert looked.tau(u, v, most=2) == pytest.approx(100 * ends, rel=1e-12)


def test_the_row_stands_over_the_papers(
    seen: tuple[Any, Readings], tables: dict[str, Table]
) -> None:
    study, run = seen
    table = tables["table-5"]
    assert table.title.endswith("here: 1,000 steps, 4 normal runs")
    ours, paper = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    for name, entry in evidence(run).table().items():
        if name in FOUR:
            head = NAMES[name]
            assert ours[f"A{head}"] == round(entry.value, 2)
            assert ours[f"ξ{head}"] == str(entry.xi)
    expected = {"sst2": (19.85, "83.53*", 83.53), "multi30k": (31.02, "43.45", 66.29)}
    known = (paper["A(α, β^uf)"], paper["ξ(β^uf, β^px)"], paper["ξ*"])
    assert known == expected[study.data]
    ends = run["observables/accuracy_dev"].to_numpy()[1:4, -1]
    assert ours["ξ*"] == pytest.approx(100 * ends.mean(), abs=0.005)


def test_there_is_a_table_for_each_that_applies(
    seen: tuple[Any, Readings], tables: dict[str, Table]
) -> None:
    kind = seen[1]["data"].attrs["kind"]
    numbers = {"labelled": (5, 3, 7, 10), "parallel": (5, 3, 7, 6, 4, 8, 10)}[kind]
    assert [name for name in tables if name.startswith("table-")] == [f"table-{n}" for n in numbers]
    assert len(tables["table-10"].rows) == (2 if kind == "labelled" else 1)
    # The paper's Table 3 has no A(α, β).
    assert tables["table-3"].rows[1][4] is None


def test_every_normal_run_stands_in_for_the_first(
    seen: tuple[Any, Readings], tables: dict[str, Table]
) -> None:
    *runs, mean, interval = tables["each-run"].rows
    normal = int((seen[1]["observables"]["case"].to_numpy() == "normal").sum())
    assert [row[0] for row in runs] == [f"α of run {letter}" for letter in "ABCDEF"[:normal]]
    first = dict(zip(tables["table-5"].columns, tables["table-5"].rows[0], strict=True))
    assert runs[0][1:] == (first["A(α, β^uf)"], first["A(α, β)"], tables["table-10"].rows[0][1])
    for place in (1, 2, 3):
        values = [float(str(row[place])) for row in runs]
        assert mean[place] == pytest.approx(np.mean(values), abs=0.01)
        low, high = (float(end) for end in str(interval[place]).split(" to "))
        assert low <= np.mean(values) + 0.01
        assert high >= np.mean(values) - 0.01


def test_bleu_of_training_data_is_not_made_up() -> None:
    run = Readings(make("parallel").tree)
    (table,) = (t for t in tables_of(spec("multi30k"), run) if t.name == "table-8")
    ours, paper = table.rows
    assert ours[6:] == (None,) * 5
    assert paper[-1] == 52.28


def test_a_set_that_the_paper_has_not_has_one_row() -> None:
    made = tables_of(spec("own.csv"), Readings(make("labelled").tree))
    assert [len(table.rows) for table in made if table.name.startswith("table-")] == [1] * 4


def test_symbols_name_run_and_step(seen: tuple[Any, Readings], tables: dict[str, Table]) -> None:
    step = evidence(seen[1]).table()["alpha_uf"].step
    rows = {str(row[0]): row for row in tables["symbols"].rows}
    first, second = rows["A(α, β^uf)"][1:3]
    assert first == "α: run A (seed 20) at step 750, where its validation accuracy is best"
    assert second == f"β^uf: uniform (seed 12) at step {step}, where the agreement is largest"
    assert str(rows["A(β^uf, β^px)"][1]).startswith("β^uf: uniform")
    assert str(rows["A(β^uf, β^px)"][2]).startswith("β^px: proxy (seed 10)")
    assert "run B (seed 13)" in str(rows["A(α, β)"][2])


def test_the_released_convention_turns_arguments_and_sign() -> None:
    run = Readings(make("labelled").tree)
    made = {t.name: t for t in tables_of(spec("sst2", "released"), run)}
    rows = {str(row[0]): row for row in made["symbols"].rows}
    assert str(rows["A(β^px, β^uf)"][1]).startswith("β^px")
    assert str(rows["A(Δ, β^uf)"][1]).endswith("its sign turned")
    assert "the released code's convention" in made["table-5"].title
    released = evidence(run).table(convention="released")
    assert made["table-5"].rows[0][2:4] == (
        round(released["uf_px"].value, 2),
        round(released["delta_uf"].value, 2),
    )
    (order, sign) = made["conventions"].rows
    assert order[2] == made["table-5"].rows[0][2]
    assert sign[1] > sign[2]  # type: ignore[operator]


def test_every_claim_holds_and_every_control_fails(found: dict[str, Finding]) -> None:
    """The story is built in, so a claim that does not see it is wrong."""
    assert list(found) == [
        "alpha-uf",
        "uf-px",
        "delta-uf",
        "alpha-beta",
        "frozen",
        "lag",
        "saliency-sign",
        "before-training-counts",
        "before-training-ibm",
    ]
    for key, finding in found.items():
        if key != "before-training-counts":  # frequent words, which are not those with worth here
            assert finding.verdict == "holds", (key, finding.ours)
        assert finding.control_fails, (key, finding.control)


def test_the_sign_of_saliency_decides(found: dict[str, Finding]) -> None:
    sign = found["saliency-sign"]
    assert sign.control == pytest.approx(-sign.ours, rel=1e-12)


def test_every_normal_run_has_a_lag(
    seen: tuple[Any, Readings], found: dict[str, Finding], tables: dict[str, Table]
) -> None:
    assert found["lag"].seeds == 4
    assert found["lag"].control < 0
    rows = tables["lag"].rows
    assert [row[0] for row in rows[:5]] == ["run A", "run B", "run C", "run D", "frozen"]
    assert rows[4][1] == STEPS[-1]  # frozen: knowledge does not come
    lags = lag(seen[1], "normal")
    assert rows[5][3] == pytest.approx(float(lags.mean()), abs=0.05)


def test_claims_say_the_papers_values() -> None:
    made = {claim.key: claim.paper for claim in claims_of(spec("sst2"))}
    assert made["alpha-uf"] == "19.85 %, 8.39 at random (Table 5)"
    assert made["frozen"] == "20 and 14 %"
    assert made["saliency-sign"] == "15.01 % (Table 3)"
    own = {claim.key: claim.paper for claim in claims_of(spec("own.csv"))}
    assert own["alpha-uf"] == own["frozen"] == "no table of this set"


def test_no_knowledge_no_agreement(seen: tuple[Any, Readings]) -> None:
    """A claim fails where the uniform run has learned nothing."""
    study, run = seen
    dull = run.tree.copy(deep=True)
    lexical = dull["observables/lexical_dev"].to_numpy()
    lexical[4, 1:] = lexical[4, :1]
    verdicts = {c.key: examine(c, dull).verdict for c in claims_of(study)}
    assert verdicts["alpha-uf"] == verdicts["uf-px"] == verdicts["delta-uf"] == "fails"
    assert verdicts["alpha-beta"] == "holds"


def test_controls_are_those_of_the_claims(
    seen: tuple[Any, Readings], found: dict[str, Finding], tables: dict[str, Table]
) -> None:
    looked = Evidence(seen[1])
    for row in tables["controls"].rows[:4]:
        name = next(n for n in FOUR if row[0] == f"A{NAMES[n]}")
        finding = found[name.replace("_", "-")]
        value, base, _, untrained = (float(cell) for cell in row[1:])  # type: ignore[arg-type]
        assert value - base == pytest.approx(finding.ours, abs=0.011)
        assert untrained - base == pytest.approx(finding.control, abs=0.011)
        assert looked.agree(*looked.pair(name)) == pytest.approx(value, abs=0.0051)


def test_figures_are_drawn(seen: tuple[Any, Readings]) -> None:
    bars, over, lags, text = figures.figures_of(*seen)
    left = [mark for mark in bars.panels[0].marks if isinstance(mark, Histogram)]
    assert [mark.label for mark in left] == ["here", "paper", "random order"]
    found = evidence(seen[1]).table()
    np.testing.assert_allclose(left[0].heights[::2], [found[name].value for name in FOUR])
    assert all(np.isnan(mark.heights[1::2]).all() for mark in left)
    assert [panel.title for panel in over.panels] == ["whole run", "early", "A(α, v(step))"]
    labels = {mark.label for mark in over.panels[0].marks if isinstance(mark, Line)}
    assert labels == {"accuracy", "A(α(step), β^uf)"}
    dots = [mark for mark in lags.panels[1].marks if isinstance(mark, Dots)]
    assert [len(mark.x) for mark in dots] == [4, 4, 4, 3]
    assert [len(panel.marks) for panel in text.panels] == [5, 5, 5]


def test_facts_of_the_data_are_words(tables: dict[str, Table]) -> None:
    rows = dict(tables["data"].rows)
    assert rows["GloVe"] == "none was found"
    assert rows["training sentences"] == "60"


def test_runs_that_never_learn_are_drawn_too():
    made = make("labelled", sentences=12, salient=5)
    observed = made.tree["observables"]
    # Attention stays uniform and β stays where it was in every run.
    for name in ("alpha_dev", "lexical_dev"):
        observed[name].values[:] = observed[name].values[:, :1]
    drawn = figures.lag(Evidence(Readings(made.tree)))
    assert len(drawn.panels) == 2
