import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.studies.snell2021.agreement import Agreement
from attnscope.studies.snell2021.agreement.classification import ClassificationSetup, read_texts
from attnscope.studies.snell2021.agreement.setup import checkpoints

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
    fields = {"seeds": 1, "hidden": 8, "embedding": 12, "proxy_epochs": 3, "glove": "none"}
    return Agreement().but(data=str(table), steps=60, **fields)


@pytest.fixture(scope="module")
def side(study):
    assert isinstance(study.setup, ClassificationSetup)
    return study.setup


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (5, (0, 5)),
        (100, (0, 10, 50, 100)),
        (4000, (0, 10, 50, 100, 150, 200, *range(250, 4001, 250))),
    ],
)
def test_evaluation_is_at_the_steps_of_the_paper(last, expected):
    assert checkpoints(ClassificationSetup.early, ClassificationSetup.every, last) == expected


def test_cells_hold_what_the_model_says_of_each_text_alone(side):
    model = side.model("normal", 20)
    texts = side.splits["dev"]
    salient = 4
    cells = int(texts.lengths[:salient].sum())
    seen = read_texts(model, texts, salient, cells)
    start = 0
    for number, ids in enumerate(texts.ids):
        alone = texts.batch([number])
        one = model.evaluate(alone.source, alone.mask)
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
    seen = read_texts(model, texts, 0, 0)
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
    seen = read_texts(model, texts, len(texts), int(texts.lengths.sum()))
    assert seen.accuracy > 0.95
    words = np.array(side.data.words)[np.concatenate(texts.ids)]
    telling = np.isin(words, GOOD + BAD)
    delta = seen.delta.numpy()
    assert delta[telling].mean() > 0
    assert delta[telling].mean() > 3 * np.abs(delta[~telling]).mean()


def test_the_proxy_is_read_word_by_word(side):
    model, texts = side.model("proxy", 10), side.splits["dev"]
    seen = read_texts(model, texts, 0, 5)
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
    engine = study.engine("proxy", 10)
    steps = -(-len(study.setup.data.train) // 64) * 3
    assert engine.grid * steps == pytest.approx(study.end)
    assert (engine.lr, engine.samples) == (1.5e-4, steps + 1)
    normal = study.engine("normal", 20)
    assert (normal.grid, normal.lr, normal.samples, normal.shuffle) == (1.0, 1e-3, 61, False)


def test_embeddings_start_from_vectors(study, side, tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("film 1 2 3\nunheard 4 5 6\n")
    model = study.but(glove=str(file), embedding=3).setup.model("normal", 20)
    plain = study.but(embedding=3).setup.model("normal", 20)
    film = side.data.words.index("film")
    assert model.embedding.weight[film].tolist() == [1.0, 2.0, 3.0]
    others = [word for word in range(len(side.data.words)) if word != film]
    assert torch.equal(model.embedding.weight[others], plain.embedding.weight[others])


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"steps": -1}, "steps = -1: expected 0 or more"),
        ({"epochs": -1}, "steps = -1"),
        ({"batch": -1}, "batch = -1"),
        ({"seeds": 0}, "seeds = 0: expected 1 or more"),
        ({"engine": "flow"}, "engine = 'flow': expected 'adam'"),
        ({"convention": "mine"}, "convention = 'mine': expected 'paper' or 'released'"),
        ({"rate": 0.0}, "rate = 0.0"),
        ({"sentence": -1}, "sentence = -1"),
        ({"gold": "a:b"}, "no words to align in classification"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_fields_are_refused(fields, sentence):
    with pytest.raises(AttnscopeError, match=sentence):
        Agreement().but(**fields)


OLD = {
    "seeds": 1,
    "engine": "descent",
    "lr": 1.0,
    "epochs": 1200,
    "points": 201,
    "correct": False,
    "data": "sst2",
    "rate": 0.004,
    "batch": 0,
    "embedding": 50,
    "hidden": 64,
    "classes": [],
}
"""Of a manifest from before training was a value."""


def test_an_old_spec_opens():
    spec = Agreement.from_json(OLD)
    assert spec == Agreement().but(seeds=1, steps=1200, rate=0.004, embedding=50, hidden=64)
    assert Agreement.from_json(spec.to_json()) == spec


def test_0_is_the_number_of_the_paper_for_the_kind_of_data():
    words, pieces = Agreement(), Agreement(data="multi30k")
    assert (words.length, words.end) == (4000, 4000.0)
    assert [words.wanted(name) for name in ("batch", "embedding", "proxy_epochs")] == [32, 300, 60]
    assert [pieces.wanted(name) for name in ("batch", "embedding", "proxy_epochs")] == [16, 256, 30]
    assert words.but(steps=7, batch=3).length == 7
    assert words.but(batch=3).wanted("batch") == 3


def test_departures_are_from_the_paper_of_the_kind():
    assert Agreement().departures() == Agreement(data="multi30k", seeds=2).departures() == ""
    assert Agreement().but(steps=4000, batch=32).departures() == ""
    assert Agreement().but(steps=50, salient=9).departures() == (
        "steps = 50 (paper: 4000), salient = 9 (paper: all)"
    )
    said = Agreement(data="multi30k").but(steps=50, batch=32).departures()
    assert said == "steps = 50 (paper: 20 to 40 epochs), batch = 32 (paper: 16)"


def test_runs_have_the_seeds_of_the_released_code():
    assert Agreement().but(seeds=3).runs() == [
        ("normal", 20),
        ("uniform", 12),
        ("proxy", 10),
        ("normal", 13),
        ("frozen", 11),
        ("normal", 14),
        ("normal", 15),
    ]


def test_a_set_that_is_not_there_is_a_sentence():
    with pytest.raises(AttnscopeError, match="nowhere"):
        _ = Agreement(data="nowhere.csv").setup


def test_sst_is_the_set_of_two_classes():
    assert Agreement(data="sst").data == "sst2"
