"""``lu2021.sst`` on a table of one's own, from the file to the report, and on SST-2 itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.integrate import cumulative_trapezoid

import attnscope
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.models import BagAttention, classifier
from attnscope.models.objective import BagObjective
from attnscope.report.drawable import drawable
from attnscope.report.figure import Dots, Line
from attnscope.studies.lu2021 import Sst
from attnscope.studies.lu2021.sst import records
from attnscope.studies.lu2021.sst.records import sides, together
from attnscope.studies.lu2021.sst.tables import axes_end
from attnscope.studies.lu2021.sst.words import end, share_within, top_words, vocabulary_gap
from attnscope.tasks import Bags
from attnscope.theory import lu2021
from attnscope.trajectory import Readings

pytestmark = pytest.mark.xdist_group("sst study")

PURE = {"good": ("moving", "solid"), "bad": ("dull", "messy")}
OTHERS = [f"w{i}" for i in range(30)]


def write_table(path: Path, rows: int = 240) -> Path:
    source = np.random.default_rng(0)
    lines = ["label\ttext"]
    for i in range(rows):
        label = ("good", "bad")[i % 2]
        words = [str(w) for w in source.choice(OTHERS, 5)]
        words.append(str(source.choice(PURE[label])))
        # A frequent word that is mostly, not always, found with one class.
        if source.random() < (0.8 if label == "good" else 0.2):
            words.append("nice")
        lines.append(f"{label}\t{' '.join(words)}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sst, xr.DataTree]:
    folder = tmp_path_factory.mktemp("sst")
    table = write_table(folder / "mine.tsv")
    study = Sst().but(data=str(table), seeds=2, epochs=1500, points=31, top=4)
    return study, attnscope.run(study, folder / "run", workers=1)


def test_every_run_ends_and_reads_its_end(done: tuple[Sst, xr.DataTree]) -> None:
    study, tree = done
    assert study.cases == ("FC, paper", "TC, paper", "FC, released", "TC, released")
    assert "all 8 runs are complete" in tree.attrs["status"]
    run = study.read(tree)
    for case in study.cases:
        assert np.isfinite(end(run.of(case), "end_test_accuracy")).all()
    accuracy = end(run.of("TC, paper"), "end_test_accuracy")
    assert (accuracy > 0.9).all()


def test_leading_words_are_the_pure_ones(done: tuple[Sst, xr.DataTree]) -> None:
    study, tree = done
    names = tree["data/words"].to_numpy()[tree["data/word_number"].to_numpy()]
    for top in top_words(study.read(tree).of("FC, paper"), 4):
        assert set(names[top]) == {w for words in PURE.values() for w in words}


def test_the_data_speak_of_the_words(done: tuple[Sst, xr.DataTree]) -> None:
    study, tree = done
    group = tree["data"].to_dataset()
    words = list(group["words"].to_numpy())
    assert group["purity"][words.index("solid")] == 1.0
    assert 0.3 < group["purity"][words.index("nice")] < 0.9
    assert group["sentences"].to_numpy().tolist() == [192, 24, 24]
    # The default pair is not in this text, so one like it is chosen.
    pure, frequent = group["pair_number"].to_numpy()
    assert group["purity"][pure] == 1.0
    assert group["purity"][frequent] < 0.9
    by_class = group["by_class"].to_numpy()
    assert by_class[pure].argmax() == by_class[frequent].argmax()
    train = study.text("paper").train
    assert train.mask is not None
    ids = group["ids"].to_numpy()
    np.testing.assert_array_equal(ids[ids >= 0], train.words.numpy())


def test_theory_is_theorem_1_and_corollary_1(done: tuple[Sst, xr.DataTree]) -> None:
    study, tree = done
    score = tree["observables/score"].to_numpy()[0]
    m = lu2021.effective_m(study.text("paper").train, study.followed())
    expected = lu2021.norm_from_score(score, m)
    np.testing.assert_allclose(tree["theory/norm"].to_numpy()[0], expected, rtol=1e-5, atol=1e-6)
    sides = tree["observables/identity"].to_numpy()[0].astype(float)
    known = np.isfinite(sides).all(axis=(1, 2))
    np.testing.assert_allclose(
        tree["theory/distance_measured"].to_numpy()[0][known] ** 2 / 2,
        sides[known, :, 1],
        rtol=1e-5,
        atol=1e-7,
    )
    times = tree["observables/time_probe"].to_numpy()[known]
    np.testing.assert_allclose(
        tree["theory/score"].to_numpy()[0][known],
        cumulative_trapezoid(sides[known, :, 3], times, axis=0, initial=0),
        rtol=1e-4,
        atol=1e-6,
    )
    # At the start theory is what is measured.
    start = tree["theory"].to_dataset().isel(probe=0)
    np.testing.assert_allclose(start["distance"], start["distance_measured"], rtol=1e-5)


def test_claims_figures_and_tables_come_of_it(done: tuple[Sst, xr.DataTree]) -> None:
    study, tree = done
    found = attnscope.findings(tree)
    assert len({finding.key for finding in found}) == len(found) == len(study.claims())
    assert {finding.verdict for finding in found} <= {"holds", "fails", "undecided"}
    for figure in study.figures(study.read(tree)):
        for panel in figure.panels:
            marks = drawable(panel).marks
            assert any(isinstance(mark, Line | Dots) and len(mark.x) for mark in marks), panel.title
    names = {table.name for table in study.tables(study.read(tree))}
    assert names == {"accuracy", "shares", "words", "rivals", "predictors", "data"}


def test_eq_8_is_the_speed_of_a_score_whose_company_is_the_same_everywhere() -> None:
    """With one sentence, averages over Ψ_t are that sentence, and Lemma 2 is exact."""
    source = torch.Generator().manual_seed(0)
    head = classifier("TC", 3, 2, generator=source)
    model = BagAttention(5, 3, head, std=1.0, generator=source).double()
    with torch.no_grad():
        model.score_source.get_parameter("score").normal_(generator=source)
    bags = Bags(torch.tensor([[0, 1, 2, 4]]), torch.tensor([1]), 5)
    words = np.array([0, 2, 4])
    read = sides(model, lu2021.PsiSets(bags, words), BagObjective(bags)).numpy()
    assert (np.abs(read[:, 2]) > 1e-3).all()
    np.testing.assert_allclose(read[:, 3], read[:, 2], rtol=1e-10)


def test_the_gap_is_zero_for_sides_that_grow_alike(done: tuple[Sst, xr.DataTree]) -> None:
    study, tree = done
    gap = vocabulary_gap(study.read(tree).of("FC, paper")).to_numpy()
    known = gap[np.isfinite(gap)]
    assert ((known >= 0) & (known <= 1 + 1e-6)).all()
    sides = tree["observables/identity_all"].to_numpy()[0].astype(float)
    word = int(np.nanargmin(gap[0]))
    growth = (sides[1, word] - sides[0, word])[:2]
    assert gap[0, word] == pytest.approx(abs(growth[0] - growth[1]) / np.abs(growth).sum())


def test_the_reading_nearest_to_the_end_of_an_axis(done: tuple[Sst, xr.DataTree]) -> None:
    """All runs here end long before the axes of the paper do."""
    study, tree = done
    rows = axes_end(study.read(tree)).rows
    assert [row[0] for row in rows] == list(study.cases)
    last = np.isfinite(tree["observables/test_accuracy"].to_numpy()[0]).sum() - 1
    assert rows[0][2] == int(tree["observables/epoch"][last])
    assert rows[0][3] == round(100 * float(tree["observables/test_accuracy"][0, last]), 2)
    assert len(str(rows[0][7]).split(", ")) == study.seeds


def test_a_share_counts_words_that_are_never_far() -> None:
    deviation = np.array([[[0.05, 0.3, np.nan], [0.09, 0.01, 0.02]]])
    curves = xr.DataArray(deviation, dims=("seed", "probe", "rank"))
    np.testing.assert_allclose(share_within(curves, 0.1), [2 / 3])


def test_the_released_setting_is_run_step_by_step() -> None:
    study = Sst(data="sst2")
    assert isinstance(study.engine("FC, paper", 0), Flow)
    assert isinstance(study.engine("FC, released", 0), Descent)
    assert Sst(variant="paper").cases == ("FC, paper", "TC, paper")


def test_both_sets_of_the_paper_are_the_papers_setting() -> None:
    assert Sst().departures() == Sst(data="sst5", seeds=2).departures() == ""
    assert "mine.tsv" in Sst(data="mine.tsv").departures()
    assert "top = 3 (paper: 50)" in Sst(data="sst5", top=3).departures()


def test_what_was_found_out_on_sst_is_not_said_of_other_sets(
    done: tuple[Sst, xr.DataTree],
) -> None:
    study, tree = done
    for claim in study.claims():
        assert "padding, most of every sentence" not in claim.reason
        assert "the paper's axes" not in claim.reason
        assert "Half of the vocabulary" not in claim.reason
    shown = {table.name: table for table in study.tables(Readings(tree))}
    assert "nan" not in str(shown["accuracy"].rows) + str(shown["predictors"].rows)


def test_claims_on_figures_of_sst2_are_of_sst2_alone() -> None:
    keys = [{claim.key for claim in Sst(data=data).claims()} for data in ("sst2", "sst5")]
    assert keys[1] < keys[0]
    assert {"leaders-FC", "epochs-TC", "fig6-FC", "fig5-drop-TC-released"} <= keys[0] - keys[1]
    assert {"accuracy-FC", "scores-TC", "fig4-corollary1-FC", "purer-TC"} <= keys[1]


def test_the_first_sentence_with_both_words_is_found() -> None:
    ids = torch.tensor([[0, 0], [1, 2], [3, 0]])
    mask = torch.tensor([[True, True], [True, True], [True, False]])
    bags = Bags(ids, torch.tensor([0, 1, 0]), 5, mask)
    assert together(bags, (2, 1)) == (1, [1, 0])
    assert together(bags, (0, 1))[0] == -1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"variant": "other"}, "variant = 'other'"),
        ({"top": 0}, "top = 0"),
        ({"least": 0}, "least = 0"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Sst(**fields)  # type: ignore[arg-type]


def test_words_that_are_not_there_are_named(tmp_path: Path) -> None:
    table = str(write_table(tmp_path / "mine.tsv", 60))
    with pytest.raises(AttnscopeError, match="holds the word 'splendid'"):
        Sst(data=table, pair=("splendid", "nice")).rivals()
    with pytest.raises(AttnscopeError, match="expected two different words"):
        Sst(data=table, pair=("nice", "nice")).rivals()
    with pytest.raises(AttnscopeError, match="stands in 1000 training sentences"):
        Sst(data=table, least=1000).followed()


def test_more_words_than_memory_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = str(write_table(tmp_path / "mine.tsv", 60))
    monkeypatch.setattr(records, "MOST_NEIGHBOURS", 100)
    with pytest.raises(AttnscopeError, match="expected shorter texts or a larger `least`"):
        Sst(data=table, least=2).followed()


def test_without_the_data_it_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    with pytest.raises(AttnscopeError, match="attnscope data get sst2"):
        attnscope.run(Sst(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_sst2_reaches_the_papers_accuracy(
    real_sst2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One seed of Attn-TC as the paper has it; 79.59 % there."""
    monkeypatch.setenv("ATTNSCOPE_DATA", str(real_sst2))
    study = Sst(seeds=1, variant="paper", points=11, least=30)
    problem = study.build("TC, paper", 0)
    solution = study.engine("TC, paper", 0).run(
        problem.model, problem.loss, time=study.end, record=[], stop=problem.stop
    )
    assert "had not fallen" in solution.status
    text = study.text("paper")
    accuracy = (problem.model(text.test).argmax(dim=1) == text.test.labels).double().mean()
    assert abs(float(accuracy) - 0.7959) < 0.02
