"""The model of Li 2023: word by word against position by position, and each switch."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models import TopicTransformer
from attnscope.tasks import Documents, TopicDocuments

pytestmark = pytest.mark.usefixtures("float64")
TASK = TopicDocuments(topics=4, words=2, tau=2, length=(5, 12), p_m=0.5, p_c=0.2, p_r=0.3)
V = TASK.vocabulary
TRAINED = {"embedding": "trained", "dim": 5, "embedding_noise": 0.7}


def built(**options: Any) -> TopicTransformer:
    """Return a model with large entries everywhere, biases too, so that all of them matter."""
    source = torch.Generator().manual_seed(1)
    options = {"noise": 0.8, "value_noise": 0.8, "attention_dim": 3} | options
    model = TopicTransformer(V, topic_of=TASK.topic_of, generator=source, **options)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.startswith("b_"):
                p.copy_(torch.randn(p.shape, generator=source))
    return model


@pytest.fixture
def documents() -> Documents:
    """Return documents of different lengths."""
    return TASK.sample(6, 0)


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("attention", ["learned", "uniform", "frozen"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"value": "identity"},
        {"value": "diagonal"},
        {"value": "block"},
        {"decoder": "free"},
        {"decoder": "identity"},
        TRAINED,
        {**TRAINED, "value": "identity"},
        {**TRAINED, "value": "diagonal", "decoder": "free"},
        {"embedding": "trained", "decoder": "identity", "embedding_noise": 0.7},
    ],
)
@pytest.mark.parametrize("shape", ["ragged", "equal"])
def test_the_fast_path_equals_the_padded_one(
    options: dict[str, Any], attention: str, biases: bool, shape: str
) -> None:
    task = (
        TASK if shape == "ragged" else TopicDocuments(topics=4, words=2, tau=2, length=8, p_m=0.5)
    )
    documents = task.sample(6, 0)
    model = built(attention=attention, biases=biases, **options)
    fast, slow = model(documents), model.forward_padded(documents)
    assert fast.shape == (int(documents.selected.sum()), V)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-12)
    trained = [p for p in model.parameters() if p.requires_grad]
    pull = torch.randn(fast.shape, generator=torch.Generator().manual_seed(2))
    if trained:
        fast_grads, slow_grads = (
            torch.autograd.grad((out * pull).sum(), trained) for out in (fast, slow)
        )
        torch.testing.assert_close(fast_grads, slow_grads, rtol=1e-9, atol=1e-11)


def test_every_weight_and_bias_matters(documents: Documents) -> None:
    model = built(biases=True, decoder="free", **TRAINED)
    named = dict(model.named_parameters())
    assert set(named) == {
        *("W_E", "W_K", "W_Q", "W_V", "W_pred", "b_K", "b_Q", "b_V", "b_pred"),
    }
    # b^Q shifts logits by what depends on the key; b^K by a number for each query, which the
    # softmax takes out again.
    grads = dict(
        zip(
            named,
            torch.autograd.grad(model(documents).square().sum(), list(named.values())),
            strict=True,
        )
    )
    still = {name for name, g in grads.items() if float(g.abs().max()) < 1e-10}
    assert still == {"b_K"}


def test_the_output_is_the_formula_of_the_paper() -> None:
    """f = W^V X̃ A + b with A = softmax((W^K X̃)ᵀ (W^Q X̃) / √d_a), columns summing to one."""
    documents = TopicDocuments(topics=4, words=2, tau=2, length=7, p_m=0.5).sample(1, 3)
    bias = torch.arange(V) / 10
    model = built(output_bias=bias)
    assert model.W_K is not None
    assert model.W_Q is not None
    assert model.W_V is not None
    x = torch.eye(V)[:, documents.visible[0]]
    a = torch.softmax((model.W_K @ x).T @ (model.W_Q @ x) / 3**0.5, dim=0)
    f = model.W_V @ x @ a + bias[:, None]
    torch.testing.assert_close(model(documents), f.T[documents.selected[0]])
    torch.testing.assert_close(model.attention(documents)[0], a)
    assert "output_bias" not in dict(model.named_parameters())


def test_attention_is_read_off_the_score_matrix(documents: Documents) -> None:
    model = built(biases=True, **TRAINED)
    weights = model.attention(documents)
    by_word, scores = model.attention_by_word(), model.score_matrix()
    torch.testing.assert_close(by_word.sum(dim=0), torch.ones(V))
    torch.testing.assert_close(by_word[1] / by_word[2], ((scores[1] - scores[2]) / 3**0.5).exp())
    for row in range(len(documents)):
        size = int(documents.lengths[row])
        words = documents.visible[row, :size]
        expected = by_word[words[:, None], words]
        torch.testing.assert_close(weights[row, :size, :size], expected / expected.sum(dim=0))
        assert not weights[row, size:].any()


def test_uniform_attention_has_no_scores(documents: Documents) -> None:
    model = built(attention="uniform")
    assert [name for name, _ in model.named_parameters()] == ["W_V"]
    assert not model.score_matrix().any()
    row = model.attention(documents)[0, : int(documents.lengths[0])]
    torch.testing.assert_close(row, torch.full_like(row, 1 / len(row)))
    with pytest.raises(AttnscopeError, match="neither keys nor queries"):
        model.keys_and_queries()


def test_named_matrices() -> None:
    model = built()
    assert torch.equal(model.embedding_gram(), torch.eye(V))
    assert torch.equal(model.value_matrix(), model.get_parameter("W_V"))
    tied = built(**TRAINED, value="identity")
    w_e = tied.get_parameter("W_E")
    torch.testing.assert_close(tied.embedding_gram(), w_e.T @ w_e)
    torch.testing.assert_close(tied.word_map(), tied.embedding_gram())
    assert torch.equal(tied.value_matrix(), torch.eye(5))
    diagonal = built(value="diagonal")
    assert torch.equal(diagonal.value_matrix(), torch.diag(diagonal.get_parameter("W_V")))


def test_a_block_value_matrix_has_three_numbers() -> None:
    model = built(value="block")
    same, different, mask = model.get_parameter("W_V").tolist()
    matrix, topic = model.value_matrix().tolist(), TASK.topic_of
    for i in range(V):
        for j in range(V):
            words = same if topic[i] == topic[j] else different
            expected = 0.0 if i == 0 else mask if j == 0 else words
            assert matrix[i][j] == expected


def test_frozen_attention_keeps_its_scores() -> None:
    model = built(attention="frozen", biases=True)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {"W_V", "b_V", "b_pred"}
    assert float(model.score_matrix().abs().max()) > 0.1


def test_the_noise_is_what_was_asked_for() -> None:
    model = TopicTransformer(101, noise=1e-3, value_noise=0.1, attention_dim=50)
    for name, std in {"W_K": 1e-3, "W_Q": 1e-3, "W_V": 0.1}.items():
        assert float(model.get_parameter(name).detach().std()) == pytest.approx(std, rel=0.05)
    assert model.get_parameter("W_K").shape == (50, 101)


def test_zero_noise_is_a_saddle_and_is_warned_of(documents: Documents) -> None:
    with pytest.warns(UserWarning, match="both stay zero for ever and attention never moves"):
        model = built(noise=0.0)
    loss = model(documents).square().sum()
    grads = torch.autograd.grad(loss, [model.get_parameter(n) for n in ("W_K", "W_Q", "W_V")])
    assert not grads[0].any()
    assert not grads[1].any()
    assert grads[2].any()


@pytest.mark.parametrize("biases", [False, True])
def test_a_second_head_that_reads_nothing_changes_nothing(
    documents: Documents, biases: bool
) -> None:
    one, two = built(biases=biases), built(heads=2, biases=biases)
    copy_into(two, one, (0, 0))
    with torch.no_grad():
        two.get_parameter("W_V")[0, 1] = 0
        if biases:
            two.get_parameter("b_V")[0, 1] = 0
    assert two.attention(documents).shape == (6, 1, 2, *documents.ids.shape[1:] * 2)
    torch.testing.assert_close(two(documents), one(documents))
    torch.testing.assert_close(two.attention(documents)[:, 0, 0], one.attention(documents))
    torch.testing.assert_close(two.score_matrix()[0, 0], one.score_matrix())
    # Heads are added: a second one like the first, without bias, doubles the output.
    copy_into(two, one, (0, 1))
    bias = one.b_pred if biases else torch.zeros(V)
    torch.testing.assert_close(two(documents) - bias, 2 * (one(documents) - bias))


def test_a_first_layer_that_adds_nothing_changes_nothing(documents: Documents) -> None:
    one, two = built(**TRAINED), built(layers=2, **TRAINED)
    copy_into(two, one, (1, 0))
    before = two(documents)
    assert not torch.allclose(before, one(documents))
    with torch.no_grad():
        two.get_parameter("W_V")[0] = 0
    torch.testing.assert_close(two(documents), one(documents))


def copy_into(many: TopicTransformer, one: TopicTransformer, place: tuple[int, int]) -> None:
    """Write the parameters of one layer and head into a larger model."""
    with torch.no_grad():
        for name, p in one.named_parameters():
            mine = many.get_parameter(name)
            (mine if mine.shape == p.shape else mine[place]).copy_(p)


def test_layers_do_not_care_for_padding_or_order(documents: Documents) -> None:
    model = built(layers=3, heads=2, biases=True, value_noise=0.3, **TRAINED)
    one = documents[torch.tensor([2])]
    size = int(one.lengths[0])
    order = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    parts = (t[:, :size][:, order] for t in (one.ids, one.visible, one.selected))
    bare = Documents(*parts, V)
    places = one.selected[0, :size].nonzero()[:, 0]
    where = [int((places == place).nonzero()) for place in order if place in places]
    torch.testing.assert_close(model(bare), model(one)[where])


def test_words_of_deeper_models_have_no_map_of_their_own(documents: Documents) -> None:
    model = built(layers=2)
    with pytest.raises(AttnscopeError, match="word_map of 2 layers with 1 heads: expected one"):
        model.word_map()
    assert built(layers=2, value="identity").value_matrix().shape == (2, 1, V, V)
    assert built(layers=2, attention="uniform").score_matrix().shape == (2, 1, V, V)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dim": 4}, "dim = 4 with embedding = 'one-hot': expected the size of the vocabulary, 9."),
        (
            {"embedding": "trained", "dim": 4, "decoder": "identity"},
            "dim = 4 with decoder = 'identity': expected the size of the vocabulary, 9.",
        ),
        ({"value": "block"}, "value = 'block': expected topic_of"),
        ({"value": "diagonal", "layers": 2}, "value = 'diagonal' with 2 layers of 1 heads"),
        ({"noise": -1.0}, "noise = -1.0: expected a standard deviation, 0 or more."),
        ({"value_noise": float("nan")}, "value_noise = nan: expected"),
        ({"heads": 0}, "heads = 0: expected 1 or more."),
        ({"attention_dim": 0}, "attention_dim = 0: expected 1 or more."),
        (
            {"biases": True, "output_bias": torch.zeros(9)},
            "output_bias of shape (9,) with biases = True",
        ),
        ({"output_bias": torch.zeros(4)}, "output_bias of shape (4,)"),
    ],
)
def test_models_that_cannot_be_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=re.escape(sentence)):
        TopicTransformer(9, **options)
