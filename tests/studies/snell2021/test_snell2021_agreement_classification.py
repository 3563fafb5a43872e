import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.studies.snell2021._agreement_classification import (
    ClassificationSide,
    evaluation_steps,
    look,
)
from attnscope.studies.snell2021._agreement_vectors import word_vectors
from attnscope.studies.snell2021.agreement import Agreement

GOOD, BAD, PLAIN = ("fine", "lovely", "superb"), ("dull", "awful", "poor"), ("a", "film", "it")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a table of texts whose label is told by one word."""
    dice = np.random.default_rng(0)
    lines = ["label,text"]
    for number in range(240):
        telling = dice.choice(GOOD if number % 2 else BAD)
        words = [*dice.choice(PLAIN, size=dice.integers(2, 9)), telling]
        lines.append(f"{'pos' if number % 2 else 'neg'},{' '.join(dice.permutation(words))}")
    file = tmp_path_factory.mktemp("texts") / "mine.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.fixture(scope="module")
def study(table):
    return Agreement(
        data=str(table), epochs=60, seeds=1, hidden=8, embedding=12, proxy_epochs=3, glove="none"
    )


@pytest.fixture(scope="module")
def side(study):
    assert isinstance(study.side, ClassificationSide)
    return study.side


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (5, (0, 5)),
        (100, (0, 10, 50, 100)),
        (4000, (0, 10, 50, 100, 150, 200, *range(250, 4001, 250))),
    ],
)
def test_evaluation_is_at_the_steps_of_the_paper(last, expected):
    assert evaluation_steps(last) == expected


def test_cells_hold_what_the_model_says_of_each_text_alone(side):
    model = side.model("normal", 20)
    texts = side.splits["dev"]
    salient = 4
    cells = int(texts.lengths[:salient].sum())
    seen = look(model, texts, salient, cells)
    start = 0
    for number, ids in enumerate(texts.ids):
        alone = texts.batch([number])
        one = model.look(alone.source, alone.mask)
        here = slice(start, start + len(ids))
        sign = 2 * texts.labels[number] - 1
        assert torch.allclose(seen.alpha[here], one.weights[0], atol=1e-6)
        assert torch.allclose(seen.lexical[here], sign * one.log_odds[0], atol=1e-6)
        if number < salient:
            delta = model.saliency(alone.source, alone.mask, alone.label)
            assert torch.allclose(seen.delta[here], delta[0], atol=1e-6)
        start += len(ids)
    assert len(seen.delta) == cells


def test_accuracy_and_loss_are_over_all_texts(side):
    model, texts = side.model("normal", 20), side.splits["dev"]
    seen = look(model, texts, 0, 0)
    batch = texts.batch(range(len(texts)))
    logits = model.logits(batch.source, batch.mask).detach()
    p = torch.sigmoid((2 * batch.label - 1) * logits)
    assert seen.accuracy == pytest.approx(float((p > 0.5).float().mean()))
    assert seen.loss == pytest.approx(float(-p.log().mean()), rel=1e-5)


def test_a_helpful_word_has_positive_saliency(side):
    """More of a word that speaks for the label lowers the loss, so Δ = -∂Loss/∂gate is above 0.

    The released code stores -∂Loss/∂gate and negates it once more; a word that speaks against the
    label would then be the salient one.
    """
    model, texts = side.model("normal", 20), side.data.train
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loss = side.loss("normal", 20)
    for number in range(60):
        optimizer.zero_grad()
        loss(model, torch.tensor([number])).backward()
        optimizer.step()
    seen = look(model, texts, len(texts), int(texts.lengths.sum()))
    assert seen.accuracy > 0.95
    words = np.array(side.data.words)[np.concatenate(texts.ids)]
    telling = np.isin(words, GOOD + BAD)
    delta = seen.delta.numpy()
    assert delta[telling].mean() > 0
    assert delta[telling].mean() > 3 * np.abs(delta[~telling]).mean()


def test_the_proxy_is_read_word_by_word(side):
    model, texts = side.model("proxy", 10), side.splits["dev"]
    seen = look(model, texts, 0, 5)
    odds = model.log_odds_by_word().detach()[np.concatenate(texts.ids)]
    sign = np.repeat(2 * texts.labels - 1, texts.lengths)
    assert torch.allclose(seen.lexical, torch.from_numpy(sign).float() * odds)
    assert seen.alpha.isnan().all()
    assert seen.delta.isnan().all()


def test_cases_are_what_they_are_called(side):
    uniform, frozen = (side.model(case, 12) for case in ("uniform", "frozen"))
    batch = side.data.train.batch([0])
    length = batch.source.shape[1]
    assert torch.allclose(uniform.attention_weights(batch.source), torch.tensor(1 / length))
    trained = {name.split(".")[0] for name, p in frozen.named_parameters() if p.requires_grad}
    assert trained == {"scorer"}


def test_runs_of_a_seed_start_alike_and_others_do_not(side):
    one, other, third = (side.model("normal", seed) for seed in (20, 20, 13))
    assert torch.equal(one.embedding.weight, other.embedding.weight)
    assert not torch.equal(one.embedding.weight, third.embedding.weight)


def test_the_proxy_takes_its_own_steps_on_the_common_axis(study):
    engine = study.make_engine("proxy", 10)
    steps = -(-len(study.side.data.train) // 64) * 3
    assert engine.grid * steps == pytest.approx(study.time)
    assert engine.lr == 1.5e-4


def test_word_vectors_start_embeddings(tmp_path):
    words = ("<pad>", "a", "film", "unheard")
    file = tmp_path / "glove.txt"
    file.write_text("film 1 2 3\na 4 5 6\n")
    found = word_vectors(str(file), words, 3)
    embedding = torch.nn.Embedding(4, 3)
    before = embedding.weight.detach().clone()
    found.put_into(embedding)
    assert embedding.weight[2].tolist() == [1.0, 2.0, 3.0]
    assert embedding.weight[1].tolist() == [4.0, 5.0, 6.0]
    assert torch.equal(embedding.weight[[0, 3]], before[[0, 3]])
    assert "2 of 4 words" in found.sentence


def test_missing_vectors_are_said(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    found = word_vectors("", ("a",), 300)
    assert len(found.numbers) == 0
    assert "no GloVe vectors of length 300" in found.sentence


def test_vectors_of_another_length_are_refused(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("film 1 2 3\n")
    with pytest.raises(AttnscopeError, match=r"length 3: expected 300.*--embedding 3"):
        word_vectors(str(file), ("film",), 300)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"epochs": -1}, "epochs = -1"),
        ({"seeds": 0}, "seeds = 0"),
        ({"lr": 0.1}, "time counts steps"),
        ({"engine": "flow"}, "expected 'descent'"),
        ({"convention": "mine"}, "convention = 'mine'"),
        ({"rate": 0.0}, "rate = 0.0"),
        ({"sentence": -1}, "sentence = -1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_fields_are_refused(fields, sentence):
    with pytest.raises(AttnscopeError, match=sentence):
        Agreement(**fields)


def test_a_set_that_is_not_there_is_a_sentence():
    with pytest.raises(AttnscopeError, match="nowhere"):
        _ = Agreement(data="nowhere.csv").side


def test_sst_is_the_set_of_two_classes():
    assert Agreement(data="sst").data == "sst2"
