"""The model of Lu 2021: fast path against slow path, symmetry, and the paper's eqs 3 and 4."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.engines import Descent
from attnscope.models import BagAttention, FixedLinear, KeyQuery, ScoreTable, classifier
from attnscope.models.pooling import cross_entropy
from attnscope.tasks import Bags, TopicWordsData

pytestmark = pytest.mark.usefixtures("float64")
DIM = 4


def built(bags: Bags, kind: str, *, keys: bool = False, **options: Any) -> BagAttention:
    """Return a model away from its special starting point, where scores would all be zero."""
    source = torch.Generator().manual_seed(11)
    scores = KeyQuery(bags.vocabulary, 3, variance=0.5, generator=source) if keys else None
    head = classifier(kind, DIM, 3, generator=source)  # type: ignore[arg-type]
    model = BagAttention(
        bags.vocabulary, DIM, head, scores=scores, std=1.0, generator=source, **options
    )
    with torch.no_grad():
        for p in model.score_source.parameters():
            p.add_(torch.randn(p.shape, generator=source))
    return model


def ragged(bags: Bags) -> Bags:
    lengths = torch.arange(len(bags)) % bags.ids.shape[1] + 1
    mask = torch.arange(bags.ids.shape[1]) < lengths[:, None]
    return Bags(bags.ids, bags.labels, bags.vocabulary, mask)


@pytest.mark.parametrize("keys", [False, True], ids=["scores", "keys"])
@pytest.mark.parametrize("freeze", ["nothing", "scores", "embeddings"])
@pytest.mark.parametrize("shape", ["equal", "ragged"])
@pytest.mark.parametrize("kind", ["FC", "FC-released", "TC", "TL"])
def test_the_fast_path_equals_the_padded_one(
    tiny: TopicWordsData, kind: str, shape: str, freeze: str, keys: bool
) -> None:
    bags = tiny.train if shape == "equal" else ragged(tiny.train)
    model = built(bags, kind, keys=keys, freeze=freeze)
    trained = [p for p in model.parameters() if p.requires_grad]
    if kind.startswith("FC") and freeze == "nothing":
        assert len(trained) == (3 if keys else 2)
    fast, slow = model(bags), model.forward_padded(bags)
    assert fast.shape == (len(bags), 3)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-12)
    fast_grads, slow_grads = (
        torch.autograd.grad(cross_entropy(logits, bags.labels), trained) for logits in (fast, slow)
    )
    torch.testing.assert_close(fast_grads, slow_grads, rtol=1e-10, atol=1e-13)
    assert all(float(g.abs().max()) > 1e-4 for g in fast_grads)


@given(st.permutations(range(15)), st.sampled_from(["FC", "TC", "TL"]), st.booleans())
def test_renaming_words_changes_nothing_but_their_names(
    tiny: TopicWordsData, order: list[int], kind: str, keys: bool
) -> None:
    bags = tiny.train
    new = torch.tensor(order)
    model, renamed = built(bags, kind, keys=keys), built(bags, kind, keys=keys)
    with torch.no_grad():
        for name in ("embedding", "score_source.key" if keys else "score_source.score"):
            renamed.get_parameter(name)[new] = model.get_parameter(name)
    other = Bags(new[bags.ids], bags.labels, bags.vocabulary)
    torch.testing.assert_close(renamed(other), model(bags))
    torch.testing.assert_close(renamed.attention(other), model.attention(bags))
    torch.testing.assert_close(renamed.scores()[new], model.scores())
    torch.testing.assert_close(renamed.embeddings()[new], model.embeddings())


def test_the_order_of_words_does_not_matter(tiny: TopicWordsData) -> None:
    model = built(tiny.train, "TL")
    flipped = Bags(tiny.train.ids.flip(1), tiny.train.labels, tiny.train.vocabulary)
    torch.testing.assert_close(model(flipped), model(tiny.train))
    torch.testing.assert_close(model.attention(flipped), model.attention(tiny.train).flip(1))


@pytest.mark.parametrize("keys", [False, True])
def test_the_start_has_no_scores_and_small_embeddings(keys: bool) -> None:
    source = torch.Generator().manual_seed(0)
    scores = KeyQuery(500, 4, variance=2.0, generator=source) if keys else None
    model = BagAttention(
        500, 15, FixedLinear(15, 4, generator=source), scores=scores, std=1e-3, generator=source
    )
    assert torch.equal(model.scores(), torch.zeros(500))
    assert float(model.embedding.detach().std()) == pytest.approx(1e-3, rel=0.05)
    bags = Bags(torch.arange(6).view(2, 3), torch.tensor([0, 1]), 500)
    torch.testing.assert_close(model.attention(bags), torch.full((2, 3), 1 / 3))


def test_the_query_has_the_variance_asked_for() -> None:
    source = torch.Generator().manual_seed(0)
    query = KeyQuery(2, 20_000, variance=0.5, generator=source).query.detach()
    assert float(query.var()) == pytest.approx(0.5, rel=0.05)
    assert not KeyQuery(2, 3, variance=1.0, train_query=False).query.requires_grad


@pytest.mark.parametrize(
    ("freeze", "keys", "still"),
    [
        ("scores", False, {"score_source.score"}),
        ("scores", True, {"score_source.key", "score_source.query"}),
        ("embeddings", False, {"embedding"}),
        ("embeddings", True, {"embedding"}),
        ("nothing", True, set()),
    ],
)
def test_frozen_parameters_do_not_move(
    tiny: TopicWordsData, freeze: str, keys: bool, still: set[str]
) -> None:
    bags = tiny.train
    model = built(bags, "TC", keys=keys, freeze=freeze)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    Descent(lr=0.5).run(model, lambda m: cross_entropy(m(bags), bags.labels), time=2.5, record=[])
    same = {name for name, p in model.named_parameters() if torch.equal(p, before[name])}
    assert same == still


def test_a_fixed_query_is_the_score_table_at_another_learning_rate(tiny: TopicWordsData) -> None:
    """Lu 2021, eqs 3 and 4: s = qᵀκ and v = ‖q‖ν at τ move as s and v do at η = τ‖q‖²."""
    bags, tau = tiny.train, 0.3
    source = torch.Generator().manual_seed(2)
    keys = KeyQuery(bags.vocabulary, 5, variance=2.0, train_query=False, generator=source)
    norm = float(keys.query.norm())
    assert abs(norm - 1) > 0.2
    head = FixedLinear(DIM, 3, generator=source)
    explicit = BagAttention(bags.vocabulary, DIM, head, scores=keys, std=0.5, generator=source)
    scaled = FixedLinear(DIM, 3)
    scaled.weight.copy_(head.weight / norm)
    reduced = BagAttention(bags.vocabulary, DIM, scaled, scores=ScoreTable(bags.vocabulary))
    with torch.no_grad():
        reduced.embedding.copy_(explicit.embedding * norm)

    def loss(model: torch.nn.Module) -> torch.Tensor:
        return cross_entropy(model(bags), bags.labels)

    torch.testing.assert_close(loss(explicit), loss(reduced))
    first = Descent(lr=tau).run(explicit, loss, time=tau * 40, record=[])
    second = Descent(lr=tau * norm**2).run(reduced, loss, time=tau * norm**2 * 40, record=[])
    assert first.steps == second.steps == 40
    assert first.loss < 0.8 * float(torch.log(torch.tensor(3.0)))
    torch.testing.assert_close(explicit.scores(), reduced.scores(), rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(explicit.embeddings(), reduced.embeddings(), rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(explicit.embeddings(), norm * explicit.embedding, rtol=1e-15, atol=0)


def test_one_step_of_descent_is_equations_3_and_4(tiny: TopicWordsData) -> None:
    bags, eta = tiny.train, 0.2
    model = built(bags, "FC")
    s, v = model.scores().detach().clone(), model.embedding.detach().clone()
    u = model.classifier.weight
    change_s, change_v = torch.zeros_like(s), torch.zeros_like(v)
    for words, label in zip(bags.ids, bags.labels, strict=True):
        weights = torch.exp(s[words]) / torch.exp(s[words]).sum()
        mean = weights @ v[words]
        h = u @ (torch.eye(3)[label] - torch.softmax(u.T @ mean, dim=0))
        for word, weight in zip(words, weights, strict=True):
            change_v[word] += eta / len(bags) * h * weight
            change_s[word] += eta / len(bags) * (v[word] - mean) @ h * weight
    Descent(lr=eta).run(model, lambda m: cross_entropy(m(bags), bags.labels), time=eta, record=[])
    torch.testing.assert_close(model.scores(), s + change_s, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(model.embeddings(), v + change_v, rtol=1e-12, atol=1e-13)
