"""The losses of Li 2023: against plain sums, every topic set, autograd and the theorems."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.engines import Descent
from attnscope.engines.parameters import flattened
from attnscope.errors import AttnscopeError
from attnscope.models import PopulationObjective, TopicObjective, TopicTransformer
from attnscope.tasks import Documents, TopicDocuments, TopicPopulation, TopicStream

pytestmark = pytest.mark.usefixtures("float64")
MASKS = {"p_m": 0.3, "p_c": 0.2, "p_r": 0.25}
TASK = TopicDocuments(topics=4, words=2, tau=2, length=(5, 12), **MASKS)
POPULATION = TopicPopulation(topics=4, words=2, tau=2, **MASKS)
V = TASK.vocabulary
KINDS = ["cross-entropy", "squared"]


def built(seed: int = 1, **options: Any) -> TopicTransformer:
    source = torch.Generator().manual_seed(seed)
    options = {"noise": 0.8, "value_noise": 0.8, "attention_dim": 3} | options
    model = TopicTransformer(V, topic_of=TASK.topic_of, generator=source, **options)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.startswith("b_"):
                p.copy_(torch.randn(p.shape, generator=source))
    return model


def cost(kind: str, out: Tensor, word: int) -> Tensor:
    if kind == "squared":
        return (out - torch.eye(V)[word]).square().sum()
    return F.cross_entropy(out[None], torch.tensor([word]))


def by_position(
    model: TopicTransformer, documents: Documents, kind: str, masked_queries: bool
) -> Tensor:
    """Average over selected positions, then over documents, one after the other."""
    total = torch.zeros(())
    outputs = iter(model.forward_padded(documents))
    for ids, visible, selected in zip(
        documents.ids, documents.visible, documents.selected, strict=True
    ):
        places = selected.nonzero()[:, 0].tolist()
        for place in places:
            out = next(outputs)
            if masked_queries or visible[place] > 0:
                total = total + cost(kind, out, int(ids[place])) / len(places)
    return total / len(documents)


def by_topic_set(model: TopicTransformer, kind: str, masked_queries: bool) -> Tensor:
    """Average over topic sets, original words and queries, from the definitions."""
    p, v, tau = POPULATION, POPULATION.words, POPULATION.tau
    sets = list(combinations(range(p.topics), tau))
    total = torch.zeros(())
    bias = model.offset()
    for chosen in sets:
        words = [1 + t * v + i for t in chosen for i in range(v)]
        y = torch.full((V,), p.p_m * p.p_r / (V - 1))
        y[0] = p.p_m * (1 - p.p_c - p.p_r)
        y[words] += (1 - p.p_m + p.p_m * p.p_c) / (v * tau)
        for query in range(V):
            a = y * (model.score_matrix()[:, query] / model.attention_dim**0.5).exp()
            out = model.word_map() @ (a / a.sum())
            if bias is not None:
                out = out + bias
            for word in words:
                chance = p.p_c * (query == word) + p.p_r * (query > 0) / (V - 1)
                if query == 0:
                    chance = (1 - p.p_c - p.p_r) * masked_queries
                total = total + chance * cost(kind, out, word) / len(words) / len(sets)
    return total


@pytest.mark.parametrize("masked_queries", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"biases": True},
        {"attention": "uniform"},
        {"embedding": "trained", "dim": 5},
        {"layers": 2, "heads": 2, "value_noise": 0.2},
    ],
)
def test_the_loss_is_an_average_over_positions_then_documents(
    options: dict[str, Any], kind: Any, masked_queries: bool
) -> None:
    documents, model = TASK.sample(9, 0), built(**options)
    objective = TopicObjective(documents, kind, masked_queries=masked_queries)
    expected = by_position(model, documents, kind, masked_queries)
    torch.testing.assert_close(objective(model), expected)
    rows = torch.tensor([7, 2, 3])
    expected = by_position(model, documents[rows], kind, masked_queries)
    torch.testing.assert_close(objective(model, rows), expected)


@pytest.mark.parametrize("masked_queries", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("attention", ["learned", "uniform"])
def test_the_population_loss_is_an_average_over_all_topic_sets(
    attention: str, biases: bool, kind: Any, masked_queries: bool
) -> None:
    model = built(attention=attention, biases=biases)
    objective = PopulationObjective(POPULATION, kind, masked_queries=masked_queries)
    expected = by_topic_set(model, kind, masked_queries)
    torch.testing.assert_close(objective(model), expected, rtol=1e-12, atol=1e-13)


def test_the_loss_on_long_documents_comes_close_to_the_population() -> None:
    model = built(value_noise=0.3)
    documents = TopicDocuments(topics=4, words=2, tau=2, length=3000, **MASKS).sample(300, 1)
    sampled = float(TopicObjective(documents, "squared")(model).detach())
    exact = float(PopulationObjective(POPULATION)(model).detach())
    assert sampled == pytest.approx(exact, rel=0.01)
    assert float(PopulationObjective(POPULATION)(built(2)).detach()) != pytest.approx(
        exact, rel=0.1
    )


def both_gradients(objective: Any, model: TopicTransformer, *rows: Tensor) -> tuple[float, float]:
    """Check the gradient by hand against autograd; return both losses."""
    with flattened(model) as flat:
        out = torch.full_like(flat.vector, torch.nan)
        value = objective.value_and_gradient(model, out, *rows)
        assert value is not None
        loss = objective(model, *rows)
        grads = torch.autograd.grad(loss, flat.tensors, allow_unused=True)
        for mine, grad in zip(flat.parts(out), grads, strict=True):
            expected = torch.zeros_like(mine) if grad is None else grad
            torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-13)
        return value, loss.item()


@pytest.mark.parametrize("where", ["documents", "rows", "population"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"biases": True},
        {"attention": "uniform"},
        {"attention": "uniform", "biases": True},
        {"attention": "frozen", "biases": True},
        {"decoder": "identity", "attention_dim": 1},
    ],
)
def test_the_gradient_by_hand_is_that_of_autograd(
    options: dict[str, Any], penalty: float, kind: Any, where: str
) -> None:
    model, rows = built(**options), ()
    settings: dict[str, Any] = {"penalty": penalty}
    if model.W_K is not None:
        settings["penalised"] = ("W_V", "W_K")
    objective: Any
    if where == "population":
        objective = PopulationObjective(POPULATION, kind, **settings)
    else:
        objective = TopicObjective(TASK.sample(9, 0), kind, **settings)
        rows = (torch.tensor([1, 5]),) if where == "rows" else ()  # type: ignore[assignment]
    value, loss = both_gradients(objective, model, *rows)
    assert value == pytest.approx(loss, rel=1e-12)


def test_the_identity_as_value_matrix_goes_by_hand_too() -> None:
    value, loss = both_gradients(TopicObjective(TASK.sample(9, 0)), built(value="identity"))
    assert value == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"embedding": "trained"},
        {"decoder": "free"},
        {"value": "block"},
        {"value": "diagonal"},
        {"layers": 2},
        {"heads": 2},
    ],
)
def test_other_models_go_through_autograd(options: dict[str, Any]) -> None:
    model, objective = built(**options), TopicObjective(TASK.sample(9, 0))
    with flattened(model) as flat:
        assert objective.value_and_gradient(model, torch.empty_like(flat.vector)) is None
    before = float(objective(model).detach())
    assert Descent(lr=1e-3).run(model, objective, time=5e-3, record=[]).loss < before


@pytest.mark.parametrize("value", ["free", "block", "diagonal"])
def test_the_penalty_is_the_squared_norm_of_what_is_named(value: Any) -> None:
    model, documents = built(value=value), TASK.sample(4, 0)
    plain = TopicObjective(documents)(model)
    norm = model.value_matrix().square().sum()
    torch.testing.assert_close(TopicObjective(documents, penalty=0.7)(model), plain + 0.7 * norm)
    both = TopicObjective(documents, penalty=0.7, penalised=("W_K", "W_Q"))(model)
    norms = sum(model.get_parameter(name).square().sum() for name in ("W_K", "W_Q"))
    torch.testing.assert_close(both, plain + 0.7 * norms)


def test_the_loss_can_be_differentiated_twice() -> None:
    model, objective = built(), TopicObjective(TASK.sample(3, 0))
    w = model.get_parameter("W_Q")
    (grad,) = torch.autograd.grad(objective(model), w, create_graph=True)
    direction = torch.randn(w.shape, generator=torch.Generator().manual_seed(0))
    (curved,) = torch.autograd.grad((grad * direction).sum(), w)
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            w.add_(direction, alpha=sign * 1e-5)
        ends.append(torch.autograd.grad(objective(model), w)[0])
        with torch.no_grad():
            w.sub_(direction, alpha=sign * 1e-5)
    torch.testing.assert_close(curved, (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-8)


def constants(p: TopicPopulation) -> tuple[float, float, float]:
    """Return c1, c2, c3 of theorem 2."""
    hidden = 1 - p.p_c - p.p_r
    c3 = 1 / (1 - (1 - p.p_c) * p.p_m)
    return p.p_r * c3 / (hidden * (V - 1)), 1 / (hidden * p.p_m) - 1, c3


def test_theorem_2_is_where_the_gradient_vanishes() -> None:
    """And of all such places the one of smallest norm, which is what λ -> 0 leaves."""
    c1, c2, c3 = constants(POPULATION)
    size = c2**2 + V - 1
    different = -(c1 * c2 + c3) / size
    numbers = [different + c3 / 2, different, (c2 * c3 - c1 * (V - 1)) / size]
    objective = PopulationObjective(POPULATION)
    model = built(attention="uniform")
    with torch.no_grad():
        block = built(value="block")
        block.get_parameter("W_V").copy_(torch.tensor(numbers))
        model.get_parameter("W_V").copy_(block.value_matrix())
    loss = objective(model)
    (grad,) = torch.autograd.grad(loss, model.get_parameter("W_V"))
    assert float(grad.abs().max()) < 1e-15
    assert loss.item() == pytest.approx(POPULATION.noise, abs=1e-14)
    # No part of it lies in the kernel of E[yyᵀ], where the loss does not change.
    second = torch.from_numpy(POPULATION.moments.second)
    values, vectors = torch.linalg.eigh(second)
    kernel = vectors[:, values < 1e-12]
    assert kernel.shape[1] == V - POPULATION.topics
    assert float((model.value_matrix().detach() @ kernel).abs().max()) < 1e-12
    strong = PopulationObjective(POPULATION, penalty=1e-3)
    assert both_gradients(strong, model)[0] > loss.item()


@pytest.mark.parametrize("shape", ["diagonal", "blocks"])
def test_theorem_1_with_its_bias(shape: str) -> None:
    """E = c3 diag(0, 1, ..., 1) is optimal for b_i = -p_m p_r c3 / (T v) on words and b_0 = 0.

    So is the same row sum spread over a topic; c3 I is not, because of [MASK].
    """
    _, _, c3 = constants(POPULATION)
    bias = torch.full((V,), -POPULATION.p_m * POPULATION.p_r * c3 / (V - 1))
    bias[0] = 0
    model = built(embedding="trained", attention="uniform", value="identity", output_bias=bias)
    topic = torch.from_numpy(TASK.topic_of)
    root = torch.eye(V) if shape == "diagonal" else (topic[:, None] == topic) / 2
    w_e = model.get_parameter("W_E")
    with torch.no_grad():
        w_e.copy_(c3**0.5 * root)
        w_e[0] = 0
    objective = PopulationObjective(POPULATION)
    assert objective(model).item() == pytest.approx(POPULATION.noise, abs=1e-14)
    with torch.no_grad():
        w_e[0, 0] = c3**0.5
    mask = POPULATION.p_m * (1 - POPULATION.p_c - POPULATION.p_r)
    assert objective(model).item() == pytest.approx(POPULATION.noise + (c3 * mask) ** 2)


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 5.0), (1.0, 1.0), (7.0, 0.5)])
def test_the_stage_2_loss_is_that_of_the_paper(alpha: float, beta: float) -> None:
    """Eqs F.22 to F.26: attention alpha within a topic, beta to the word itself, no [MASK]."""
    p, t, v, tau = POPULATION, POPULATION.topics, POPULATION.words, POPULATION.tau
    _, _, c3 = constants(p)
    shift = p.p_m * p.p_r * c3 / (t * v)

    def q(x: float) -> float:
        return c3 * x - shift

    p2 = p.p_m * p.p_r / (v * t)
    p1 = (1 - (1 - p.p_c) * p.p_m) / (v * tau) + p2
    g = (v - 1) / v * alpha + beta / v
    z1 = p1 * g * v + p1 * v * (tau - 1) + p2 * v * (t - tau)
    z2 = p2 * g * v + p1 * v * tau + p2 * v * (t - tau - 1)
    own, other, absent = q(p1 * g / z1), q(p1 / z1), q(p2 / z1)
    present, foreign, rest = q(p1 / z2), q(p2 * g / z2), q(p2 / z2)
    expected = (p.p_c + p.p_r / t) * (
        (1 - own) ** 2 + (v - 1) * own**2 + v * (tau - 1) * other**2 + v * (t - tau) * absent**2
    )
    expected += (p.p_r * (tau - 1) / t) * (
        (1 - other) ** 2 + v * own**2 + (v * (tau - 1) - 1) * other**2 + v * (t - tau) * absent**2
    )
    expected += (p.p_r * (1 - tau / t)) * (
        (1 - present) ** 2
        + (v * tau - 1) * present**2
        + v * foreign**2
        + v * (t - tau - 1) * rest**2
    )
    bias = torch.full((V,), -shift)
    bias[0] = 0
    model = built(value="block", attention="frozen", attention_dim=V, output_bias=bias)
    topic = torch.from_numpy(TASK.topic_of)
    weights = torch.where(topic[:, None] == topic, alpha, 1.0)
    weights.fill_diagonal_(beta)
    weights[0] = 1e-30
    with torch.no_grad():
        model.get_parameter("W_V").copy_(torch.tensor([c3 / v, 0, 0]))
        model.get_parameter("W_K").copy_(torch.eye(V))
        model.get_parameter("W_Q").copy_(weights.log() * V**0.5)
    objective = PopulationObjective(p, masked_queries=False)
    assert objective(model).item() == pytest.approx(expected, rel=1e-12)


def test_descent_on_a_stream_takes_fresh_documents() -> None:
    task = TopicDocuments(topics=4, words=2, tau=1, length=20, **MASKS)
    objective = TopicObjective(TopicStream(task, 0))
    model = built(noise=0.01, value_noise=0.01)
    rows = torch.arange(5)
    assert objective(model, rows).item() == objective(model, rows).item()
    assert objective(model, rows).item() != objective(model, rows + 5).item()
    solution = Descent(lr=3.0, batch_size=20, samples=2000).run(
        model, objective, time=300.0, record=[]
    )
    assert solution.steps == 100
    # One topic of 2 words: better than guessing any of the 8.
    assert solution.loss < 0.75 * float(torch.log(torch.tensor(8.0)))
    with pytest.raises(AttnscopeError, match="a stream of fresh documents has no full batch"):
        objective(model)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"penalty": -0.1}, "penalty = -0.1: expected a finite λ, 0 or more"),
        ({"penalty": float("nan")}, "penalty = nan: expected a finite λ"),
        ({"kind": "hinge"}, "kind = 'hinge': expected 'cross-entropy' or 'squared'."),
    ],
)
def test_losses_that_are_none_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=re.escape(sentence)):
        PopulationObjective(POPULATION, **options)


def test_what_does_not_fit_the_model_is_refused() -> None:
    objective = PopulationObjective(POPULATION, penalty=1.0, penalised=("W_K",))
    with pytest.raises(AttnscopeError, match=r"no 'W_K'; expected some of W_V\."):
        objective(built(attention="uniform"))
    with pytest.raises(AttnscopeError, match="a population has no mini-batches"):
        PopulationObjective(POPULATION)(built(), torch.tensor([0]))
    with pytest.raises(AttnscopeError, match="of 2 layers with 1 heads: expected one layer"):
        PopulationObjective(POPULATION)(built(layers=2))


@pytest.mark.parametrize("options", [{}, {"attention": "uniform"}, {"layers": 2}])
def test_documents_of_another_vocabulary_are_refused(options: dict[str, Any]) -> None:
    sentence = "a model of 9 words on documents of 13: expected the same vocabulary"
    model = built(**options)
    objectives: list[Any] = [TopicObjective(TopicDocuments(topics=4, words=3).sample(2, 0))]
    if model.single:
        objectives.append(PopulationObjective(TopicPopulation(topics=4, words=3)))
    with flattened(model) as flat:
        for objective in objectives:
            with pytest.raises(AttnscopeError, match=sentence):
                objective(model)
            with pytest.raises(AttnscopeError, match=sentence):
                flat.value_and_gradient(objective, model, torch.empty_like(flat.vector))
