"""The translation side of the agreement study, on sentences of a made-up language."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.seq2seq import Seq2Seq, cross_entropy
from attnscope.models.seq2seq.saliency import translation_saliency
from attnscope.models.word_proxy import WordProxy
from attnscope.probes.lexicon.bleu import corpus_bleu
from attnscope.studies.snell2021.agreement import Agreement, translation
from attnscope.studies.snell2021.agreement.setup import checkpoints
from attnscope.studies.snell2021.agreement.translation import TranslationSetup, read_pairs, scored
from attnscope.tasks import pieces
from attnscope.tasks.parallel_pieces import PiecePairs

NOUNS = {"haus": "house", "baum": "tree", "hund": "dog", "fluss": "river", "mann": "man"}
VERBS = {"sieht": "sees", "malt": "paints", "sucht": "seeks"}
PAIRS, SALIENT = 150, 4


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return two files, German and English, word for word."""
    folder = tmp_path_factory.mktemp("pairs")
    dice = np.random.default_rng(0)
    german, english = [], []
    for _ in range(PAIRS):
        words = [dice.choice([*NOUNS]), dice.choice([*VERBS]), *dice.choice([*NOUNS], 3)]
        words = words[: dice.integers(3, 6)]
        german.append(" ".join(words))
        english.append(" ".join((NOUNS | VERBS)[word] for word in words))
    for name, lines in (("mine.de", german), ("mine.en", english)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return f"{folder / 'mine.de'}:{folder / 'mine.en'}"


@pytest.fixture(scope="module")
def study(files: str, tmp_path_factory: pytest.TempPathFactory) -> Agreement:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "cache_dir", lambda: tmp_path_factory.mktemp("cache"))
        spec = Agreement().but(
            data=files,
            seeds=1,
            steps=60,
            hidden=6,
            embedding=5,
            vocabulary=60,
            proxy_epochs=3,
            salient=SALIENT,
        )
        assert len(spec.setup.data.words) > 10
    return spec


@pytest.fixture(scope="module")
def side(study: Agreement) -> TranslationSetup:
    assert isinstance(study.setup, TranslationSetup)
    return study.setup


def test_evaluation_is_at_the_steps_of_the_paper() -> None:
    early, every = TranslationSetup.early, TranslationSetup.every
    steps = checkpoints(early, every, 36260)
    assert steps[:9] == (0, 50, 100, 500, 1000, 1500, 2000, 4000, 6000)
    assert steps[-2:] == (36000, 36260)
    assert checkpoints(early, every, 20) == (0, 20)
    assert checkpoints(early, every, 4500) == (0, 50, 100, 500, 1000, 1500, 2000, 4000, 4500)


def test_pairs_are_a_tenth_set_apart(side: TranslationSetup) -> None:
    assert (len(side.data.dev), len(side.data.train)) == (PAIRS // 10, PAIRS - PAIRS // 10)
    assert len(side.splits["train"]) == len(side.data.dev)
    assert side.study.but(steps=0).length == 20 * -(-(PAIRS - PAIRS // 10) // 16)
    facts = json.loads(side.truth().attrs["facts"])
    assert facts["translation"] == "de to en"


def test_the_truth_has_a_row_for_each_target_piece(side: TranslationSetup) -> None:
    truth = side.truth()
    assert truth.attrs["kind"] == "parallel"
    for split, pairs in side.splits.items():
        length, sentence = (truth[f"{n}_{split}"].to_numpy() for n in ("length", "sentence"))
        ends = length.cumsum()
        row = 0
        for number, (source, target) in enumerate(zip(pairs.source, pairs.target, strict=True)):
            for word in target:
                assert (sentence[row], length[row]) == (number, len(source))
                assert truth[f"target_{split}"][row] == word
                here = slice(ends[row] - length[row], ends[row])
                assert np.array_equal(truth[f"source_{split}"][here], source)
                row += 1
        assert row == len(length)
        assert truth.sizes[f"cell_{split}"] == pairs.cells.sum() == ends[-1]


@pytest.mark.parametrize("at_once", [12, 1000])
def test_cells_hold_what_the_model_says_of_each_pair_alone(
    side: TranslationSetup, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "TOKENS_AT_ONCE", at_once)
    model, pairs = side.model("normal", 20), side.splits["dev"]
    assert isinstance(model, Seq2Seq)
    room = int(pairs.cells[:SALIENT].sum())
    before = torch.get_rng_state()
    seen = read_pairs(model, pairs, SALIENT, room)
    assert torch.equal(before, torch.get_rng_state())
    assert model.training
    start, right, loss, tokens = 0, 0, 0.0, 0
    for number in range(len(pairs)):
        alone = pairs.batch([number])
        one = model.evaluate(alone)
        here = slice(start, start + alone.source.numel() * alone.target.numel())
        assert torch.allclose(seen.alpha[here], one.weights[0, 0].flatten(), atol=1e-6)
        assert torch.allclose(seen.lexical[here], one.log_beta[0].flatten(), atol=1e-5)
        if number < SALIENT:
            delta = translation_saliency(model, alone)
            assert torch.allclose(seen.delta[here], delta.flatten(), atol=1e-5)
        right += int((one.predicted == alone.target).sum())
        loss -= float(one.log_p.sum())
        tokens += alone.target.numel()
        start = here.stop
    assert start == len(seen.alpha) == len(seen.lexical)
    assert len(seen.delta) == room
    assert seen.accuracy == right / tokens
    assert seen.loss == pytest.approx(loss / tokens, rel=1e-5)


def test_the_proxy_is_read_likewise_and_has_no_attention(side: TranslationSetup) -> None:
    model, pairs = side.model("proxy", 10), side.splits["dev"]
    assert isinstance(model, WordProxy)
    seen = read_pairs(model, pairs, SALIENT, 7)
    assert seen.alpha.isnan().all()
    assert seen.delta.isnan().all()
    start, loss = 0, 0.0
    with torch.no_grad():
        for number in range(len(pairs)):
            alone = pairs.batch([number])
            here = slice(start, start + alone.source.numel() * alone.target.numel())
            assert torch.allclose(seen.lexical[here], model.log_beta(alone).flatten(), atol=1e-5)
            mean = model.logits_by_word()[alone.source[0]].mean(dim=0)
            loss -= float(torch.log_softmax(mean, dim=0)[alone.target[0]].sum())
            start = here.stop
    assert seen.loss == pytest.approx(loss / pairs.target_lengths.sum(), rel=1e-5)


class Knowing:
    """Translates as the pairs do, in whatever batches it is asked."""

    def __init__(self, pairs: PiecePairs) -> None:
        rows = zip(pairs.source, pairs.target, strict=True)
        self.known = {tuple(source.tolist()): target for source, target in rows}

    def greedy(self, source: Tensor, mask: Tensor | None) -> Tensor:
        here = torch.ones_like(source, dtype=torch.bool) if mask is None else mask
        rows = [self.known[tuple(r[m].tolist())] for r, m in zip(source, here, strict=True)]
        out = torch.zeros(len(rows), max(map(len, rows)) + 2, dtype=torch.int64)
        for row, ids in zip(out, rows, strict=True):
            row[: len(ids)] = torch.from_numpy(ids)
        return out


def test_translations_are_scored_as_text(
    side: TranslationSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "TOKENS_AT_ONCE", 20)
    pairs, texts = side.data.dev, side.data.dev_texts
    model: Seq2Seq = Knowing(pairs)  # type: ignore[assignment]
    assert scored(model, pairs, side.data.pieces, texts) == 100.0
    turned = texts[::-1]
    assert scored(model, pairs, side.data.pieces, turned) == corpus_bleu(texts, turned) < 100


def test_models_of_the_cases(side: TranslationSetup) -> None:
    normal, uniform, frozen = (side.model(c, 20) for c in ("normal", "uniform", "frozen"))
    assert all(isinstance(m, Seq2Seq) for m in (normal, uniform, frozen))
    trained = {name for name, p in frozen.named_parameters() if p.requires_grad}
    assert trained == {"head_W", "head_b"}
    assert {name for name, p in uniform.named_parameters() if not p.requires_grad} == trained
    for (name, ours), theirs in zip(normal.named_parameters(), frozen.parameters(), strict=True):
        assert torch.equal(ours, theirs), name


def test_the_model_of_the_paper_has_the_papers_number_of_parameters(files: str) -> None:
    side = TranslationSetup(Agreement(data=files), None)
    words = type("Data", (), {"words": tuple("x" for _ in range(8000))})()
    side.__dict__["data"] = words
    assert sum(p.numel() for p in side.model("normal", 20).parameters()) == 8_180_544


def test_a_loss_is_that_of_the_batch_of_its_number(side: TranslationSetup) -> None:
    model, loss = side.model("normal", 20), side.loss("normal", 20)
    model.eval()
    per_epoch = -(-len(side.data.train) // 16)
    total, tokens = 0.0, 0
    with torch.no_grad():
        for number in range(per_epoch):
            rows = side.batches("normal", 20).rows(number)
            count = int(side.data.train.target_lengths[rows].sum())
            total += count * float(loss(model, torch.tensor([number])))
            tokens += count
        whole = side.data.train.batch(range(len(side.data.train)))
        assert total / tokens == pytest.approx(float(cross_entropy(model, whole)), rel=1e-5)  # type: ignore[arg-type]
        number = torch.tensor([3])
        again, other = side.loss("normal", 20), side.loss("normal", 13)
        assert float(again(model, number)) == float(loss(model, number))
        assert float(other(model, number)) != float(loss(model, number))


def test_the_proxys_steps_lie_on_the_axis_of_the_others(side: TranslationSetup) -> None:
    engine = side.study.engine("proxy", 10)
    steps = 3 * -(-len(side.data.train) // 64)
    assert engine.grid * steps == pytest.approx(side.study.end)
    assert (engine.lr, engine.samples) == (1e-3, steps + 1)
    assert side.study.engine("normal", 20).grid == 1.0


def test_training_lowers_the_loss_in_every_case(side: TranslationSetup) -> None:
    for case in ("normal", "uniform", "frozen", "proxy"):
        model = side.model(case, 20)
        before = read_pairs(model, side.splits["train"]).loss
        torch.manual_seed(20)
        engine = side.study.engine(case, 20)
        engine.run(model, side.loss(case, 20), time=side.study.end, record=[])
        assert read_pairs(model, side.splits["train"]).loss < before, case


def test_readings_have_the_rooms_that_were_promised(side: TranslationSetup) -> None:
    for case, first in (("normal", True), ("uniform", False), ("proxy", False)):
        model = side.model(case, 20)
        (record,) = side.records(case, first)
        found = {o.name: o.read(model) for o in record.observables}
        for split, pairs in side.splits.items():
            counts = pairs.cells
            assert len(found[f"alpha_{split}"]) == len(found[f"lexical_{split}"]) == counts.sum()
            delta = found[f"delta_{split}"]
            assert len(delta) == counts[:SALIENT].sum()
            assert bool(delta.isnan().any()) is not first
        assert bool(found["bleu"].isnan()) is (case == "proxy")


def test_aligned_pairs_are_read_at_the_end(side: TranslationSetup, tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("haus ||| house\nhund sieht baum ||| dog sees tree\n")
    (tmp_path / "links").write_text("1-1\n1-1 2-2 3-3\n")
    gold = side.study.but(gold=f"{tmp_path / 'texts'}:{tmp_path / 'links'}").setup
    assert gold.gold is not None
    model = side.model("normal", 20)
    steps, ends = gold.records("normal", True)
    values = [observable.read(model) for observable in ends.observables]
    seen = read_pairs(model, gold.gold.pairs)
    assert [o.name for o in ends.observables] == ["alpha_gold", "lexical_gold"]
    assert torch.equal(values[0], seen.alpha)
    assert torch.equal(values[1], seen.lexical)
    assert (steps.dim, ends.dim) == ("step", "end")
    assert list(ends.times(30.0, 1.0)) == [0.0, 30.0]
    assert side.gold is None


def test_a_language_that_the_files_do_not_have(files: str) -> None:
    with pytest.raises(AttnscopeError, match="source = 'fr': expected a language of"):
        _ = Agreement(data=files, source="fr").setup.data


def test_files_of_different_length(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins\n")
    (tmp_path / "a.en").write_text("one\ntwo\n")
    with pytest.raises(AttnscopeError, match=r"has 1 lines and .* has 2"):
        _ = Agreement(data=f"{tmp_path / 'a.de'}:{tmp_path / 'a.en'}").setup
