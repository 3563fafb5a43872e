"""The masked-prediction loss of Li 2023, on sampled documents and on the whole population.

    L = mean over documents of 1/|M| Σ_{j in M} l(f(X̃)_j, x_j),   plus λ ||θ||²_F,

with l(y, x) = ||y - x||² (the theory) or the cross-entropy of softmax(y) (the experiments).

Gradients of the one-layer model with one-hot embeddings are written out. With a context c =
(document, query), its attention a_c over words, its output f_c = W a_c + b and g_c = ∂L/∂f_c,

    ∂L/∂W = Σ_c g_c a_cᵀ,    ∂L/∂s_c = a_c ⊙ (Wᵀg_c - a_cᵀWᵀg_c),

where s_c is the row of query(c) of (W^Q)ᵀ W^K / √d_a.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.tasks.topic_contexts import Contexts
from attnscope.tasks.topic_documents import MASK, Documents, TopicStream
from attnscope.tasks.topic_population import TopicPopulation

LossKind = Literal["cross-entropy", "squared"]


class _Objective(ABC):
    """What both objectives share: the loss over contexts, the penalty, the gradient by hand."""

    any_device: ClassVar[bool] = True

    def __init__(
        self, kind: LossKind, penalty: float, penalised: tuple[str, ...], masked_queries: bool
    ) -> None:
        if kind not in ("cross-entropy", "squared"):
            raise AttnscopeError(f"kind = {kind!r}: expected 'cross-entropy' or 'squared'.")
        if not 0 <= penalty < float("inf"):
            raise AttnscopeError(
                f"penalty = {penalty}: expected a finite λ, 0 or more; below 0 the loss has no "
                "minimum."
            )
        self.kind, self.penalty, self.penalised = kind, penalty, penalised
        self.masked_queries = masked_queries

    @abstractmethod
    def contexts(self, model: TopicTransformer, rows: Tensor | None) -> Contexts:
        """Return the contexts that the loss is a sum over."""

    def __call__(self, model: TopicTransformer, rows: Tensor | None = None) -> Tensor:
        """Return the loss, differentiable as often as one likes."""
        return self._data_loss(model, rows) + self._penalty(model)

    def _data_loss(self, model: TopicTransformer, rows: Tensor | None) -> Tensor:
        contexts = self.contexts(model, rows)
        return _loss(self.kind, model.on_contexts(contexts), contexts.target)

    def _penalty(self, model: TopicTransformer) -> Tensor | float:
        """Return λ times the squared Frobenius norms of what is penalised."""
        total: Tensor | float = 0.0
        if self.penalty:
            for name in self.penalised:
                total = total + self.penalty * self._matrix(model, name).square().sum()
        return total

    def _matrix(self, model: TopicTransformer, name: str) -> Tensor:
        named = dict(model.named_parameters())
        if name not in named:
            raise AttnscopeError(
                f"penalised = {self.penalised}: this model has no {name!r}; expected some of "
                f"{', '.join(named)}."
            )
        return model.value_matrix() if name == "W_V" else named[name]

    def value_and_gradient(
        self, model: TopicTransformer, out: Tensor, rows: Tensor | None = None
    ) -> float | None:
        """Write ∂L/∂θ into ``out`` and return L; see :mod:`attnscope.models.objective`.

        Returns:
            The loss, or ``None`` if this has to go through autograd: anything but one layer and
            one head, one-hot embeddings, no decoder, and a W^V that is free or the identity.
        """
        if (
            type(model) is not TopicTransformer
            or not model.single
            or model.embedding_kind != "one-hot"
            or model.decoder_kind == "free"
            or model.value_kind not in ("free", "identity")
            or not out.is_cpu
        ):
            return None
        with torch.no_grad():
            value, gradients = self._gradients(model, rows)
            start = out.storage_offset()
            for name, p in model.named_parameters():
                if not p.requires_grad:
                    continue
                # A parameter and its part of a flat gradient lie in memory in the same order.
                part = out.as_strided(p.shape, p.stride(), start)
                part.copy_(gradients[name])
                if self.penalty and name in self.penalised:
                    part.add_(p, alpha=2 * self.penalty)
                start += p.numel()
            return value + float(self._penalty(model))

    def _gradients(
        self, model: TopicTransformer, rows: Tensor | None
    ) -> tuple[float, dict[str, Tensor]]:
        """Return the loss without penalty, and its gradient by parameter."""
        contexts, w = self.contexts(model, rows), model.word_map()
        logits, root = contexts.offsets, model.attention_dim**0.5
        learned = model.attention_kind == "learned"
        if model.W_K is not None:
            keys, queries = model.keys_and_queries()
            logits = (queries.T @ keys).div_(root).index_select(0, contexts.query).add_(logits)
        a = torch.softmax(logits, dim=1)
        f, offset = a @ w.T, model.offset()
        if offset is not None:
            f += offset
        value, g = _loss_and_slope(self.kind, f, contexts)
        gradients = {"W_V": g.T @ a}
        if model.b_pred is not None:
            gradients["b_V"] = gradients["b_pred"] = g.sum(dim=0)
        if learned:
            s = g @ w
            s.sub_(torch.linalg.vecdot(a, s)[:, None]).mul_(a)
            by_query = s.new_zeros(w.shape).index_add_(0, contexts.query, s).div_(root)
            gradients["W_K"], gradients["W_Q"] = queries @ by_query, keys @ by_query.T
            gradients |= {f"b_{side}": gradients[f"W_{side}"].sum(dim=1) for side in "KQ"}
        return value, gradients


class TopicObjective(_Objective):
    """The loss of a :class:`TopicTransformer` on documents.

    Args:
        documents: what is trained on. With a :class:`TopicStream` every mini-batch is fresh, and
            ``Descent(batch_size=40, samples=40 * steps)`` is the SGD of the paper.
        kind: ``"cross-entropy"`` or ``"squared"``.
        penalty: λ of the L2 penalty λ ||θ||²_F.
        penalised: names of the parameters θ it is over. Theorem 2 is about W^V, and penalises it
            as a matrix whatever is trained of it.
        masked_queries: whether selected positions that show [MASK] count. Theorem 3 leaves them
            out; averages stay over all selected positions.
    """

    def __init__(
        self,
        documents: Documents | TopicStream,
        kind: LossKind = "cross-entropy",
        *,
        penalty: float = 0.0,
        penalised: tuple[str, ...] = ("W_V",),
        masked_queries: bool = True,
    ) -> None:
        super().__init__(kind, penalty, penalised, masked_queries)
        self.documents = documents

    def batch(self, rows: Tensor | None) -> Documents:
        """Return the documents of a mini-batch, or all of them."""
        if rows is not None:
            return self.documents[rows]
        if isinstance(self.documents, TopicStream):
            raise AttnscopeError(
                "a stream of fresh documents has no full batch: expected mini-batches, as of "
                "Descent(batch_size=..., samples=...)."
            )
        return self.documents

    def contexts(self, model: TopicTransformer, rows: Tensor | None) -> Contexts:
        """Return the distinct contexts of the documents, or of a mini-batch."""
        documents = self.batch(rows)
        model.check_vocabulary(documents.vocabulary)
        return documents.contexts(
            model.dtype,
            by_query=model.attention_kind != "uniform",
            masked_queries=self.masked_queries,
        )

    def _data_loss(self, model: TopicTransformer, rows: Tensor | None) -> Tensor:
        if model.single:
            return super()._data_loss(model, rows)
        documents = self.batch(rows)
        out, originals = model(documents), documents.ids[documents.places]
        weights = documents.weights.to(out.dtype)
        if not self.masked_queries:
            weights = weights * (documents.visible[documents.places] != MASK)
        target = torch.zeros_like(out).scatter_(1, originals[:, None], weights[:, None])
        return _loss(self.kind, out, target)


class PopulationObjective(_Objective):
    """The expected loss of a one-layer :class:`TopicTransformer`, free of sampling noise.

    With uniform attention and the squared loss it is a quadratic form in W = W^pred W^V W^E and b,

        L = tr(W E[yyᵀ] Wᵀ) + 2 bᵀW E[y] + ||b||² - 2 tr(Wᵀ E[Pyᵀ]) - 2 bᵀE[P] + 1,

    for any number of topic sets. Otherwise it is a sum over all topic sets and queries.

    Args:
        population: what the expectation is over.
        kind: ``"squared"``, the theory's, or ``"cross-entropy"``.
        penalty: λ of the L2 penalty λ ||θ||²_F.
        penalised: names of the parameters θ it is over.
        masked_queries: whether selected positions that show [MASK] count. Without them the loss is
            a sum of probability p_c + p_r, as in Li 2023, eqs F.22 to F.26.
    """

    def __init__(
        self,
        population: TopicPopulation,
        kind: LossKind = "squared",
        *,
        penalty: float = 0.0,
        penalised: tuple[str, ...] = ("W_V",),
        masked_queries: bool = True,
    ) -> None:
        super().__init__(kind, penalty, penalised, masked_queries)
        self.population = population
        self._contexts: dict[tuple[torch.dtype, bool], Contexts] = {}
        self._moments: dict[torch.dtype, tuple[Tensor, ...]] = {}

    def contexts(self, model: TopicTransformer, rows: Tensor | None) -> Contexts:
        """Return all topic sets, with all queries if attention looks at them."""
        model.check_vocabulary(self.population.vocabulary)
        if rows is not None:
            raise AttnscopeError("a population has no mini-batches: expected the full batch.")
        key = (model.dtype, model.attention_kind != "uniform")
        if key not in self._contexts:
            self._contexts[key] = self.population.contexts(
                key[0], by_query=key[1], masked_queries=self.masked_queries
            )
        return self._contexts[key]

    def _quadratic(self, model: TopicTransformer) -> bool:
        return self.kind == "squared" and model.single and model.attention_kind == "uniform"

    def _data_loss(self, model: TopicTransformer, rows: Tensor | None) -> Tensor:
        if not self._quadratic(model):
            return super()._data_loss(model, rows)
        w, b, (visible, original, second, cross) = self._linear(model)
        quadratic = (w * (w @ second - 2 * cross)).sum()
        return self._shown * (quadratic + b @ (2 * (w @ visible - original) + b) + 1)

    def _gradients(
        self, model: TopicTransformer, rows: Tensor | None
    ) -> tuple[float, dict[str, Tensor]]:
        if not self._quadratic(model):
            return super()._gradients(model, rows)
        w, b, (visible, original, second, cross) = self._linear(model)
        by_word = w @ second - cross
        by_bias = w @ visible - original
        value = torch.tensordot(w, by_word - cross) + b @ (2 * by_bias + b) + 1
        slope = 2 * self._shown * (by_bias + b)
        gradients = {"W_V": 2 * self._shown * by_word.addr_(b, visible)}
        return self._shown * value.item(), gradients | {"b_V": slope, "b_pred": slope}

    def _linear(self, model: TopicTransformer) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """Return W, b and the moments that the loss of W y + b is made of."""
        model.check_vocabulary(self.population.vocabulary)
        dtype = model.dtype
        if dtype not in self._moments:
            self._moments[dtype] = tuple(
                torch.from_numpy(moment).to(dtype) for moment in self.population.moments
            )
        w, b = model.word_map(), model.offset()
        return w, w.new_zeros(len(w)) if b is None else b, self._moments[dtype]

    @property
    def _shown(self) -> float:
        """Probability that a selected position counts; it says nothing of S and x."""
        return 1.0 if self.masked_queries else self.population.p_c + self.population.p_r


def _loss(kind: LossKind, out: Tensor, target: Tensor) -> Tensor:
    """Return Σ target · l(out, word), the shares of the words being those in ``target``."""
    if kind == "cross-entropy":
        return -(target * torch.log_softmax(out, dim=1)).sum()
    squares = target.sum(dim=1, keepdim=True) * out.square() - 2 * target * out
    return squares.sum() + target.sum()


def _loss_and_slope(kind: LossKind, out: Tensor, contexts: Contexts) -> tuple[float, Tensor]:
    """Return :func:`_loss` and its derivative by the output."""
    target, weight = contexts.target, contexts.weight
    if kind == "cross-entropy":
        logs = torch.log_softmax(out, dim=1)
        value = -torch.dot(target.view(-1), logs.view(-1))
        return value.item(), logs.exp_().mul_(weight).sub_(target)
    slope = weight * out
    value = torch.dot(out.view(-1), (slope - 2 * target).view(-1)) + weight.sum()
    return value.item(), slope.sub_(target).mul_(2)
