"""The sequence-to-sequence model against its formulas, one pair at a time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnscope.engines import Descent
from attnscope.errors import AttnscopeError
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqObjective, States, cross_entropy
from attnscope.models.seq2seq.probe import SLICE
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import END, PAD, START, SequencePairs

pytestmark = pytest.mark.usefixtures("float64")
WORDS, L, T = 9, 5, 4
CASES: list[dict[str, Any]] = [
    {},
    {"output": "relu", "bidirectional": True, "layers": 2, "projection": True},
    {"output": "linear", "heads": 3},
    {"output": "added", "heads": 2, "heads_pooled": "mean"},
    {"output": "added", "bidirectional": True, "projection": True, "cell": "gru"},
    {"attention": "uniform", "cell": "gru", "bidirectional": True, "layers": 2},
    {"heads": 2, "projection": True, "attention": "uniform"},
    {"heads": 3, "head_projections": True, "output": "added", "bidirectional": True},
    {"heads": 2, "head_projections": True, "heads_pooled": "mean", "cell": "gru"},
]
cases = pytest.mark.parametrize("options", CASES, ids=lambda o: "-".join(map(str, o.values())))


def built(options: dict[str, Any] | None = None, seed: int = 1, **more: Any) -> Seq2Seq:
    torch.manual_seed(seed)
    return Seq2Seq(WORDS, embedding=3, hidden=4, **(options or {}) | more)


def drawn(rows: int = 3, seed: int = 0, length: int = L, steps: int = T) -> SequencePairs:
    source = torch.Generator().manual_seed(seed)
    words = torch.randint(3, WORDS, (rows, length + steps), generator=source)
    return SequencePairs(words[:, :length], words[:, length:].contiguous())


def counted(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def output_network(model: Seq2Seq, context: Tensor, state: Tensor) -> Tensor:
    """Return log N([c, s]) of one context and one decoder state, as the paper writes it."""
    if model.output_kind == "added":
        return torch.log_softmax(model.readout(context + state), dim=0)
    x = torch.cat([context, state])
    if model.mixing is not None:
        x = {"tanh": torch.tanh, "relu": torch.relu}[model.output_kind](model.mixing(x))
    return torch.log_softmax(model.readout(x), dim=0)


def pooled(model: Seq2Seq, contexts: list[Tensor]) -> Tensor:
    if (own := model.head_projections) is not None:
        # P^(k) maps columns: (E, H) in memory.
        contexts = [own.weight[k].T @ c + own.bias[k] for k, c in enumerate(contexts)]
    together = torch.stack(contexts).sum(dim=0)
    if model.heads_pooled == "mean":
        together = together / len(contexts)
    return together if model.projection is None else model.projection(together)


def test_the_published_numbers_of_parameters_come_out() -> None:
    model = Seq2Seq(
        8000,
        embedding=256,
        hidden=256,
        layers=2,
        bidirectional=True,
        output="relu",
        projection=True,
        dropout=0.5,
    )
    assert counted(model) == 8_180_544
    assert counted(model) - counted(model.embedding) == 6_132_544


@cases
def test_weights_and_probabilities_are_the_formulas(options: dict[str, Any]) -> None:
    model, pairs = built(options), drawn()
    states = model.states(pairs)
    weights = model.attention_weights(states)
    found = model.log_probabilities(pairs)
    for row in range(len(pairs)):
        for t in range(T):
            s, contexts = states.decoder[row, t], []
            for k in range(model.heads):
                query = s @ model.head_W[k] + model.head_b[k]
                logits = torch.stack([query @ h for h in states.encoder[row]])
                if model.attention_kind == "uniform":
                    logits = 0 * logits
                alpha = torch.softmax(logits, dim=0)
                torch.testing.assert_close(weights[row, k, t], alpha)
                terms = zip(alpha, states.encoder[row], strict=True)
                contexts.append(torch.stack([a * h for a, h in terms]).sum(dim=0))
            expected = output_network(model, pooled(model, contexts), s)
            torch.testing.assert_close(found[row, t], expected)


@cases
def test_the_states_are_those_of_pytorch(options: dict[str, Any]) -> None:
    model, pairs = built(options), drawn()
    states = model.states(pairs)
    table = model.embedding.weight
    encoder, last = nn.Module.__call__(model.encoder, table[pairs.source])
    parts = last if isinstance(last, tuple) else (last,)
    if model.encoder.bidirectional:
        # PyTorch orders last states layer by layer, forward before backward.
        parts = tuple(
            torch.stack([(p[i] + p[i + 1]) / 2 for i in range(0, len(p), 2)]) for p in parts
        )
    start = torch.full((len(pairs), 1), START)
    read = table[torch.cat([start, pairs.target[:, :-1]], dim=1)]
    decoder, _ = model.decoder(read, parts if isinstance(last, tuple) else parts[0])
    torch.testing.assert_close(states.encoder, encoder)
    torch.testing.assert_close(states.decoder, decoder)


@cases
def test_the_probe_is_the_network_on_one_state_at_a_time(options: dict[str, Any]) -> None:
    model, pairs = built(options), drawn()
    states = model.states(pairs)
    found = model.lexical_probe(states, pairs.target)
    for row in range(len(pairs)):
        for t in range(T):
            for position in range(L):
                context = pooled(model, [states.encoder[row, position]] * model.heads)
                log_p = output_network(model, context, states.decoder[row, t])
                torch.testing.assert_close(found[row, t, position], log_p[pairs.target[row, t]])


@cases
def test_the_probe_is_the_probability_under_attention_to_one_position(
    options: dict[str, Any],
) -> None:
    model, pairs = built(options), drawn()
    states = model.states(pairs)
    found = model.lexical_probe(states, pairs.target)
    for position in range(L):
        weights = torch.zeros(len(pairs), model.heads, T, L)
        weights[..., position] = 1
        log_p = torch.log_softmax(model.logits(states, weights), dim=2)
        right = log_p.gather(2, pairs.target[:, :, None])[:, :, 0]
        torch.testing.assert_close(found[:, :, position], right)


def test_slices_of_the_probe_fit_together() -> None:
    # Two decoder steps a slice, and one left over.
    length = SLICE // (2 * WORDS)
    model, pairs = built(), drawn(rows=1, length=length, steps=3)
    h, s = torch.randn(1, length, 4), torch.randn(1, 3, 4)
    found = model.lexical_probe(States(h, s, None), pairs.target)
    few = model.lexical_probe(States(h[:, -3:], s, None), pairs.target)
    assert found.shape == (1, 3, length)
    torch.testing.assert_close(found[:, :, -3:], few)


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, L), st.integers(1, T)), min_size=1, max_size=4),
    options=st.sampled_from(CASES),
    rubbish=st.integers(0, WORDS - 1),
)
def test_padding_changes_no_number(
    sizes: list[tuple[int, int]], options: dict[str, Any], rubbish: int
) -> None:
    model, pairs = built(options), drawn(rows=len(sizes))
    lengths, steps = torch.tensor(sizes).T
    source_mask = torch.arange(L) < lengths[:, None]
    target_mask = torch.arange(T) < steps[:, None]
    padded = SequencePairs(
        pairs.source.masked_fill(~source_mask, rubbish),
        pairs.target.masked_fill(~target_mask, rubbish),
        source_mask,
        target_mask,
    )
    look, total = model.evaluate(padded), 0.0
    for row, (length, step) in enumerate(sizes):
        one = SequencePairs(
            pairs.source[row : row + 1, :length], pairs.target[row : row + 1, :step]
        )
        alone = model.evaluate(one)
        total += step * cross_entropy(model, one).item()
        near = {"rtol": 1e-12, "atol": 1e-12}
        torch.testing.assert_close(look.weights[row, :, :step, :length], alone.weights[0], **near)
        torch.testing.assert_close(look.log_beta[row, :step, :length], alone.log_beta[0], **near)
        torch.testing.assert_close(look.log_p[row, :step], alone.log_p[0], **near)
        assert torch.equal(look.predicted[row, :step], alone.predicted[0])
        assert not bool(look.weights[row, :, step:].any())
        assert not bool(look.weights[row, :, :, length:].any())
        assert bool((look.log_beta[row, step:] == -torch.inf).all())
        assert bool((look.log_beta[row, :, length:] == -torch.inf).all())
        assert bool((look.log_p[row, step:] == 0).all())
        assert bool((look.predicted[row, step:] == PAD).all())
        words = model.greedy(one.source, limit=6)[0]
        together = model.greedy(padded.source, source_mask, limit=6)[row]
        assert torch.equal(together[: len(words)], words)
        assert not bool(together[len(words) :].any())
    mean = cross_entropy(model, padded).item()
    assert mean == pytest.approx(total / int(steps.sum()), rel=1e-12)


def test_greedy_feeds_back_what_it_says_and_stops_at_the_end() -> None:
    model, pairs = built(), drawn(rows=8)
    with torch.no_grad():
        model.readout.weight.mul_(20)
        model.readout.bias[END] += 1
    words = model.greedy(pairs.source, limit=7)
    ends = (words == END).int().argmax(dim=1)
    assert bool((words == END).any())
    assert words.shape[1] == 7
    said = model.log_probabilities(SequencePairs(pairs.source, words)).argmax(dim=2)
    for row in range(len(words)):
        end = int(ends[row]) if bool((words[row] == END).any()) else len(words[row]) - 1
        assert torch.equal(said[row, : end + 1], words[row, : end + 1])
        assert not bool(words[row, end + 1 :].any())


def test_one_position_works_and_is_looked_at() -> None:
    model, pairs = built(), drawn(length=1, steps=1)
    look = model.evaluate(pairs)
    assert bool((look.weights == 1).all())
    torch.testing.assert_close(look.log_beta[:, :, 0], look.log_p)


def test_two_vocabularies_have_embeddings_of_their_own() -> None:
    torch.manual_seed(0)
    model = Seq2Seq(7, 12, embedding=3, hidden=4)
    assert model.target_embedding is not None
    assert model.log_probabilities(_two()).shape == (1, 2, 12)
    with pytest.raises(AttnscopeError, match="source with ids from 3 to 11: expected 0 to 6"):
        model.log_probabilities(SequencePairs(_two().target, _two().source))


def _two() -> SequencePairs:
    return SequencePairs(torch.tensor([[3, 6]]), torch.tensor([[11, 3]]))


def test_only_attention_is_trained_if_so() -> None:
    every = {name for name, _ in built().named_parameters()}

    def trained(**options: Any) -> set[str]:
        model = built(**options)
        return {name for name, p in model.named_parameters() if p.requires_grad}

    heads = {"head_W", "head_b"}
    assert trained() == every
    assert trained(trained="attention") == heads
    assert trained(attention="uniform") == every - heads
    own = {"head_projections.weight", "head_projections.bias"}
    assert trained(head_projections=True) == every | own
    assert trained(head_projections=True, trained="attention") == heads


def test_the_rest_starts_the_same_whatever_the_heads() -> None:
    for own in (False, True):
        one, many = (
            dict(built(heads=heads, head_projections=own).named_parameters()) for heads in (1, 8)
        )
        assert one.keys() == many.keys()
        for name in [name for name in one if not name.startswith("head_")]:
            assert torch.equal(one[name], many[name])


def test_looking_drops_nothing_out() -> None:
    model, pairs = built(layers=2, dropout=0.5), drawn()
    assert torch.equal(model.evaluate(pairs).log_p, model.evaluate(pairs).log_p)
    assert model.training
    assert not torch.equal(model.log_probabilities(pairs), model.log_probabilities(pairs))


def test_descent_learns_to_copy() -> None:
    task = Copying(length=3, types=6)
    torch.manual_seed(0)
    model = Seq2Seq(task.vocabulary, embedding=16, hidden=16)
    objective = Seq2SeqObjective(task.stream(0))
    held_out = task.sample(50, 1)
    before = cross_entropy(model, held_out).item()
    steps = 150
    engine = Descent(lr=1e-2, optimizer="adam", batch_size=32, samples=32 * (steps + 1), tick=1.0)
    engine.run(model, objective, time=steps, record=[])
    assert cross_entropy(model, held_out).item() < 0.3 * before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"source_vocabulary": 1}, "source_vocabulary = 1: expected 4 or more"),
        ({"target_vocabulary": 3}, "target_vocabulary = 3: expected 4 or more"),
        ({"heads": 0}, "heads = 0: expected 1 or more"),
        ({"cell": "rnn"}, "cell = 'rnn': expected one of"),
        ({"dropout": 1.0}, "dropout = 1.0: expected a share"),
        ({"dropout": 0.5}, "dropout = 0.5 with one layer"),
        ({"output": "added", "bidirectional": True}, "expected projection=True"),
        ({"projection": True, "head_projections": True}, "expected one of them"),
        ({"attention": "uniform", "trained": "attention"}, "something to train"),
    ],
)
def test_what_cannot_be_built_is_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Seq2Seq(**{"source_vocabulary": 9, "embedding": 3, "hidden": 4} | options)


def test_what_cannot_be_run_is_named() -> None:
    model, pairs = built(), drawn()
    empty = torch.ones_like(pairs.source, dtype=torch.bool)
    empty[2] = False
    with pytest.raises(AttnscopeError, match="no word"):
        model.greedy(pairs.source, empty)
    with pytest.raises(AttnscopeError, match=r"source of shape \(3, 0\)"):
        model.greedy(pairs.source[:, :0])
    with pytest.raises(AttnscopeError, match="limit = 0"):
        model.greedy(pairs.source, limit=0)
    with pytest.raises(AttnscopeError, match=r"target of shape \(3, 0\)"):
        cross_entropy(model, SequencePairs(pairs.source, pairs.target[:, :0]))
