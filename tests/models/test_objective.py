"""The gradient written by hand against autograd through the padded computation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnscope.engines import Descent, Flow
from attnscope.models import BagAttention, KeyQuery, classifier
from attnscope.models.bag_attention import ScoreTable
from attnscope.models.objective import BagObjective
from attnscope.models.pooling import MAX_SPREAD, cross_entropy
from attnscope.tasks import Bags, TopicWords

pytestmark = pytest.mark.usefixtures("float64")
# So many words that the dictionary of embeddings is much taller than it is wide.
DIM, DICTIONARY = 4, 77


@pytest.fixture
def bags() -> Bags:
    task = TopicWords(topics=3, words_per_topic=1, m=4, dictionary=DICTIONARY, train=25, test=1)
    return task.sample(1).train


def ragged(bags: Bags) -> Bags:
    lengths = torch.arange(len(bags)) % bags.ids.shape[1] + 1
    mask = torch.arange(bags.ids.shape[1]) < lengths[:, None]
    return Bags(bags.ids, bags.labels, bags.vocabulary, mask)


def built(bags: Bags, kind: str, freeze: str = "nothing", keys: bool = False) -> BagAttention:
    source = torch.Generator().manual_seed(1)
    head = classifier(kind, DIM, 3, generator=source)  # type: ignore[arg-type]
    scores = KeyQuery(bags.vocabulary, 3, variance=0.5, generator=source) if keys else None
    model = BagAttention(
        bags.vocabulary,
        DIM,
        head,
        scores=scores,
        std=1.0,
        freeze=freeze,  # type: ignore[arg-type]
        generator=source,
    )
    with torch.no_grad():
        for p in model.score_source.parameters():
            p.add_(torch.randn(p.shape, generator=source))
    return model


def trained(model: BagAttention) -> list[Tensor]:
    return [p for p in model.parameters() if p.requires_grad]


def flat(tensors: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    return torch.cat([t.detach().reshape(-1) for t in tensors])


@pytest.mark.parametrize("shape", ["equal", "ragged"])
@pytest.mark.parametrize("freeze", ["nothing", "scores", "embeddings"])
@pytest.mark.parametrize("kind", ["FC", "FC-released", "TC", "TL"])
def test_value_and_gradient_are_autograds(bags: Bags, kind: str, freeze: str, shape: str) -> None:
    bags = bags if shape == "equal" else ragged(bags)
    model, objective = built(bags, kind, freeze), BagObjective(bags)
    expected = cross_entropy(model.forward_padded(bags), bags.labels)
    wanted = flat(torch.autograd.grad(expected, trained(model)))
    torch.testing.assert_close(objective(model), expected, rtol=1e-12, atol=0)
    for _ in range(2):  # the second time on buffers that the first one left behind
        out = torch.full_like(wanted, torch.nan)
        value = objective.value_and_gradient(model, out)
        assert value == pytest.approx(expected.item(), rel=1e-12)
        torch.testing.assert_close(out, wanted, rtol=1e-10, atol=1e-14)


def test_the_gradient_follows_the_parameters(bags: Bags) -> None:
    model, objective = built(bags, "TL"), BagObjective(bags)
    for _ in range(3):
        with torch.no_grad():
            for p in trained(model):
                p.mul_(1.3)
        wanted = flat(torch.autograd.grad(objective(model), trained(model)))
        out = torch.empty_like(wanted)
        objective.value_and_gradient(model, out)
        torch.testing.assert_close(out, wanted, rtol=1e-10, atol=1e-14)


def test_one_objective_serves_models_of_several_kinds_and_precisions(bags: Bags) -> None:
    objective = BagObjective(bags)
    for kind in ("FC", "TL", "TC", "FC"):
        for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
            model = built(bags, kind).to(dtype)
            wanted = flat(torch.autograd.grad(objective(model), trained(model)))
            out = torch.empty_like(wanted)
            objective.value_and_gradient(model, out)
            torch.testing.assert_close(out, wanted, rtol=tolerance, atol=tolerance)


def test_autograd_is_asked_for_where_the_hand_does_not_reach(bags: Bags) -> None:
    objective = BagObjective(bags)
    out = torch.empty(100 * 100)
    assert objective.value_and_gradient(built(bags, "TC", keys=True), out) is None
    assert objective.value_and_gradient(built(bags, "TC"), out, torch.tensor([1, 2])) is None
    steep = built(bags, "TC")
    with torch.no_grad():
        steep.get_parameter("score_source.score")[0] += 2 * MAX_SPREAD
    assert objective.value_and_gradient(steep, out) is None


@pytest.mark.parametrize("keys", [False, True], ids=["scores", "keys"])
@pytest.mark.parametrize("freeze", ["nothing", "scores", "embeddings"])
@pytest.mark.parametrize("kind", ["FC", "TC", "TL"])
@pytest.mark.parametrize("engine", [Descent(lr=0.5), Flow()], ids=["descent", "flow"])
def test_engines_take_it_as_they_take_a_function(
    bags: Bags, engine: Descent | Flow, kind: str, freeze: str, keys: bool
) -> None:
    one, other = (built(bags, kind, freeze, keys) for _ in range(2))
    start = flat(trained(one)).clone()
    first = engine.run(one, BagObjective(bags), time=3.0, record=[])
    second = engine.run(
        other, lambda m: cross_entropy(m.forward_padded(bags), bags.labels), time=3.0, record=[]
    )
    # Adaptive steps past the kink of a ReLU magnify what rounding makes of the step size.
    tolerance = 1e-10 if isinstance(engine, Descent) else 1e-7
    assert first.loss == pytest.approx(second.loss, rel=tolerance)
    torch.testing.assert_close(
        flat(trained(one)), flat(trained(other)), rtol=tolerance, atol=tolerance
    )
    assert not torch.allclose(flat(trained(one)), start, atol=1e-3)


def test_minibatches_select_rows(bags: Bags) -> None:
    one, other = built(bags, "TC"), built(bags, "TC")
    engine = Descent(lr=0.5, batch_size=10, samples=len(bags))
    engine.run(one, BagObjective(bags), time=3.0, record=[])
    engine.run(
        other,
        lambda m, rows: cross_entropy(m.forward_padded(bags[rows]), bags.labels[rows]),
        time=3.0,
        record=[],
    )
    torch.testing.assert_close(flat(trained(one)), flat(trained(other)), rtol=1e-9, atol=1e-12)


def test_descent_with_it_is_pytorchs(bags: Bags) -> None:
    model, other = built(bags, "TL"), built(bags, "TL")
    Descent(lr=0.5).run(model, BagObjective(bags), time=10.0, record=[])
    optimizer = torch.optim.SGD(trained(other), lr=0.5)
    for _ in range(20):
        optimizer.zero_grad()
        cross_entropy(other.forward_padded(bags), bags.labels).backward()
        optimizer.step()
    torch.testing.assert_close(flat(trained(model)), flat(trained(other)), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["FC-released", "TC"])
def test_a_score_table_with_a_query_norm_is_keys_with_that_query(bags: Bags, kind: str) -> None:
    """Keys start at zero and only move along q: one number per word does what they do."""
    models = []
    for reduced in (False, True):
        source = torch.Generator().manual_seed(5)
        head = classifier(kind, DIM, 3, generator=source)  # type: ignore[arg-type]
        keys = KeyQuery(bags.vocabulary, 6, variance=0.5, train_query=False, generator=source)
        norm = keys.query.norm().item()
        scores = ScoreTable(bags.vocabulary, norm) if reduced else keys
        models.append(
            BagAttention(bags.vocabulary, DIM, head, scores=scores, std=0.5, generator=source)
        )
    loss = BagObjective(bags)
    for model in models:
        Descent(lr=0.5).run(model, loss, time=20.0, record=[])
    keyed, reduced_model = models
    assert keyed.scores().abs().max() > 0.1
    torch.testing.assert_close(reduced_model.scores(), keyed.scores(), rtol=0, atol=1e-12)
    torch.testing.assert_close(reduced_model.embeddings(), keyed.embeddings(), rtol=0, atol=1e-12)
