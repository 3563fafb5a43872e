"""The training loss of a bag-of-words model, with its gradient written out by hand.

An engine asks a loss for two things. ``loss(model)`` is a tensor that autograd can go through, and
is all a loss has to offer. A loss may also have

    value_and_gradient(model, out, *rows) -> float | None

which writes the gradient of all trainable parameters into the flat vector ``out``, in the order of
``model.parameters()``, and returns the loss; or returns ``None``, with ``out`` in any state, to
have the engine use autograd this time.

:class:`BagObjective` has it because on a dictionary of a few thousand words half the time of a
gradient goes into what surrounds the arithmetic: graph nodes, fresh memory and transposed copies.
"""

from __future__ import annotations

import numpy
import torch
from torch import Tensor

from attnscope.models.bag_attention import BagAttention, ScoreTable
from attnscope.models.classifiers import Classifier, FixedLinear, TrainableLinear, TwoLayer
from attnscope.models.pooling import MAX_SPREAD, cross_entropy
from attnscope.tasks.bags import Bags


class BagObjective:
    """Mean cross-entropy of a :class:`BagAttention` on labelled bags.

    Args:
        bags: the sentences and their labels.
    """

    def __init__(self, bags: Bags) -> None:
        self.bags = bags
        self._workspaces: dict[tuple[int, int, torch.dtype], _Workspace] = {}

    def __call__(self, model: BagAttention, rows: Tensor | None = None) -> Tensor:
        """Return the mean of -log softmax(logits)[label] over all sentences, or over ``rows``."""
        bags = self.bags if rows is None else self.bags[rows]
        return cross_entropy(model(bags), bags.labels)

    def value_and_gradient(
        self, model: BagAttention, out: Tensor, rows: Tensor | None = None
    ) -> float | None:
        """Write ∂L/∂θ into ``out`` and return L, both over all sentences.

        Args:
            model: the model; frozen parameters are left out of ``out``.
            out: one entry per trainable parameter, in the order of ``model.parameters()``.
            rows: sentences of a mini-batch.

        Returns:
            The loss, or ``None`` if this has to go through autograd: mini-batches, scores that are
            products of keys and a query, scores too far apart for one exponential to hold.
        """
        head = model.classifier
        if (
            rows is not None
            or type(model) is not BagAttention
            or type(source := model.score_source) is not ScoreTable
            or type(head) not in (FixedLinear, TrainableLinear, TwoLayer)
            or not out.is_cpu
        ):
            return None
        # What overflows in a step that is too long comes out as a loss that is not finite, and the
        # engine sees to it.
        with torch.no_grad(), numpy.errstate(all="ignore"):
            scores = source().detach().numpy()
            shift = numpy.maximum.reduce(scores)
            if not shift - numpy.minimum.reduce(scores) <= MAX_SPREAD:
                return None
            return self._evaluate(model.embedding, source, head, scores - shift, out)

    def _evaluate(
        self,
        embedding: Tensor,
        source: ScoreTable,
        head: Classifier,
        shifted: numpy.ndarray,
        out: Tensor,
    ) -> float:
        weight = head.weight
        rest = (head.bias, head.readout, head.readout_bias) if type(head) is TwoLayer else ()
        to_embedding, to_score, to_weight, *to_rest = _slices(
            (embedding, source.score, weight, *rest), out
        )
        classes = head.readout.shape[1] if type(head) is TwoLayer else weight.shape[1]
        work = self._workspace(weight.shape[1], classes, out.dtype)

        work.pool(shifted, embedding, weight)
        if type(head) is TwoLayer:
            value = work.two_layers(head, *to_rest)
        else:
            value = work.softmax(work.average, work.pulled)
        work.pull_back()
        if to_score is not None:
            work.score_gradient(to_score, source.query_norm)
        if to_embedding is not None:
            torch.mm(work.signal_of_word.T, weight.T, out=to_embedding)
        if to_weight is not None:
            torch.mm(embedding.T, work.signal_of_word.T, out=to_weight)
        return value

    def _workspace(self, features: int, classes: int, dtype: torch.dtype) -> _Workspace:
        key = (features, classes, dtype)
        if key not in self._workspaces:
            self._workspaces[key] = _Workspace(self.bags, *key)
        return self._workspaces[key]


def _slices(parameters: tuple[Tensor, ...], out: Tensor) -> list[Tensor | None]:
    """Return the part of a flat gradient of each parameter, ``None`` of the frozen ones."""
    parts: list[Tensor | None] = []
    start = 0
    for p in parameters:
        if p.requires_grad:
            parts.append(out.as_strided(p.shape, p.stride(), out.storage_offset() + start))
            start += p.numel()
        else:
            parts.append(None)
    return parts


class _Workspace:
    """Buffers of one gradient evaluation, and its steps in order.

    The formulas are those of :mod:`attnscope.models.pooling`. Everything is kept
    ``(feature, word)`` or ``(feature, sentence)`` but the operands of the two sparse products,
    which are fast on ``(word, feature)`` and ``(sentence, feature)`` only. Matrix products are
    PyTorch's, everything else is NumPy on the same memory: on arrays this small it has a third of
    the overhead, and it is several times faster at going from one order to the other.
    """

    def __init__(self, bags: Bags, features: int, classes: int, dtype: torch.dtype) -> None:
        def buffer(*shape: int) -> Tensor:
            return torch.empty(shape, dtype=dtype)

        words, sentences, rows = bags.vocabulary, len(bags), features + 1
        self.counts, self.counts_by_word = bags.counts(dtype), bags.counts_by_word(dtype)
        target = buffer(classes, sentences).zero_()
        target[bags.labels, torch.arange(sentences)] = -1 / sentences
        self._target = target.numpy()
        self._factors = buffer(words).numpy()
        # Words' projections Uᵀv_w, and a row of ones: times exp(s_w) it is what Z is the sum of.
        projected = buffer(rows, words).fill_(1.0)
        self._projection, self._projected = projected[:-1], projected.numpy()
        spread = buffer(rows, words)
        self.signal_of_word, self._spread = spread[:-1], spread.numpy()
        self._by_word, self._by_sentence = buffer(words, rows), buffer(sentences, rows)
        self._word_rows = self._by_word.numpy().T
        self._sentence_rows = self._by_sentence.numpy().T
        self._sums = buffer(rows, sentences).numpy()
        self._signal = buffer(rows, sentences).numpy()
        self.average = buffer(features, sentences).numpy()
        self.pulled = self._signal[:-1]

    def pool(self, shifted: numpy.ndarray, embedding: Tensor, weight: Tensor) -> None:
        """Compute the attention-weighted averages of the projected words."""
        numpy.exp(shifted, out=self._factors)
        torch.mm(weight.T, embedding.T, out=self._projection)
        for row, weighted in zip(self._projected, self._word_rows, strict=True):
            numpy.multiply(row, self._factors, out=weighted)
        torch.addmm(self._by_sentence, self.counts, self._by_word, beta=0, out=self._by_sentence)
        numpy.copyto(self._sums, self._sentence_rows)
        numpy.divide(self._sums[:-1], self._sums[-1], out=self.average)

    def softmax(self, logits: numpy.ndarray, pulled: numpy.ndarray) -> float:
        """Return the mean cross-entropy and put its derivative by the logits into ``pulled``."""
        shifted = logits - numpy.maximum.reduce(logits)
        numpy.exp(shifted, out=pulled)
        total = numpy.add.reduce(pulled)
        numpy.divide(pulled, total * total.size, out=pulled)
        numpy.add(pulled, self._target, out=pulled)
        logs = numpy.add.reduce(numpy.log(total, out=total)) / total.size
        return float(logs + numpy.vdot(self._target, shifted))

    def two_layers(
        self,
        head: TwoLayer,
        to_bias: Tensor | None,
        to_readout: Tensor | None,
        to_readout_bias: Tensor | None,
    ) -> float:
        """Do :meth:`softmax` behind a ReLU layer, with the gradients of what follows U₁."""
        active = numpy.add(self.average, head.bias.detach().numpy()[:, None])
        numpy.maximum(active, 0, out=active)
        hidden = torch.from_numpy(active)
        logits = torch.addmm(head.readout_bias[:, None], head.readout.T, hidden)
        pulled = torch.empty_like(logits)
        value = self.softmax(logits.numpy(), pulled.numpy())
        # The derivative of the ReLU is the sign of its result.
        numpy.multiply((head.readout @ pulled).numpy(), numpy.sign(active), out=self.pulled)
        if to_bias is not None:
            numpy.add.reduce(self.pulled, axis=1, out=to_bias.numpy())
        if to_readout is not None:
            torch.mm(hidden, pulled.T, out=to_readout)
        if to_readout_bias is not None:
            torch.sum(pulled, dim=1, out=to_readout_bias)
        return value

    def pull_back(self) -> None:
        """Carry the derivatives by the averages back to the words: e_w D_w."""
        numpy.divide(self.pulled, self._sums[-1], out=self.pulled)
        numpy.multiply(self.average, self.pulled, out=self.average)
        numpy.negative(numpy.add.reduce(self.average), out=self._signal[-1])
        numpy.copyto(self._sentence_rows, self._signal)
        torch.addmm(
            self._by_word, self.counts_by_word, self._by_sentence, beta=0, out=self._by_word
        )
        numpy.multiply(self._word_rows, self._factors, out=self._spread)

    def score_gradient(self, out: Tensor, query_norm: float) -> None:
        """Write ‖q‖ e_w (V_wᵀ D_w + D'_w)."""
        numpy.einsum("fw,fw->w", self._spread, self._projected, out=out.numpy())
        if query_norm != 1:
            out.mul_(query_norm)
