r"""What single words of the probe batch do for the right answer: saliency and lexical probe.

Both reach into the model through its input embedding, so they need no knowledge of the model.

- Saliency of position l is :math:`\Delta_l = -\partial \text{loss} / \partial g_l` at
  :math:`g = 1`, where :math:`g_l` multiplies the embedding of that position (Snell 2021, section
  5): positive for a word that helps. The loss is that of the row, mean over its targets.
- The lexical probe of position l is :math:`\beta_l = p(y)` when the embeddings of all other
  positions are 0: what the model would say if it knew that word only. In the models of Snell 2021
  the probe attends to one position; a model of many layers has no such switch, so the words are
  taken away and attention is left alone. It costs a forward pass for each position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.lexical import saliency
from attnscope.watching.moment import Moment, Need, Reading
from attnscope.watching.probe import Probe
from attnscope.watching.readings.offer import NO_PROBE, Offer, WatchedModel, array

IGNORED = -100
"""A target that does not count, as in PyTorch."""


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family."""
    probe, targets = watched.probe, watched.targets
    lacks = "" if probe else NO_PROBE
    lacks = lacks or ("" if targets is not None else "right answers: targets=...")
    embedding = "" if probe and probe.embedding else "an nn.Embedding, and none was found"
    of_words = () if targets is None or targets.ndim == 1 else ("target",)

    def loss(moment: Moment) -> Tensor:
        assert targets is not None
        return -_mean(log_likelihood(moment.evaluation.output, targets), targets).mean()

    def salient(_: Moment) -> Tensor:
        assert probe is not None
        assert targets is not None
        return _saliency(probe, targets)

    def lexical(_: Moment) -> Tensor:
        assert probe is not None
        assert targets is not None
        return _lexical(probe, targets)

    needs: frozenset[Need] = frozenset({"probe"})
    saliencies = Reading(
        "saliency",
        salient,
        ("row", "position"),
        needs,
        "nats",
        "minus the derivative of the row's loss by a factor on the word's embedding",
    )
    knowledge = Reading(
        "lexical_probe",
        lexical,
        ("row", *of_words, "position"),
        needs,
        meaning="probability of the right answer when only this word's embedding is not 0",
    )
    return [
        Offer(
            Reading("probe_loss", loss, (), needs, "nats", "loss on the probe batch"), True, lacks
        ),
        Offer(saliencies, True, lacks or embedding),
        Offer(knowledge, False, lacks or embedding),
    ]


def log_likelihood(output: object, targets: Tensor) -> Tensor:
    """Return the log-probability of the right answers, 0 where a target does not count.

    Args:
        output: logits of the shape of the targets with a last axis for classes or words; of exactly
            that shape, or with a last axis of 1, for two classes; or an output that has ``logits``.
        targets: numbers of classes or words, ``(row,)`` or ``(row, position)``.

    Raises:
        AttnscopeError: they do not fit.
    """
    logits = _logits(output)
    targets = targets.to(logits.device)
    wide = logits.float() if logits.itemsize < 4 else logits
    if logits.shape == (*targets.shape, 1):
        wide = wide[..., 0]
    if wide.shape == targets.shape:
        sign = 2 * targets.to(wide.dtype) - 1
        return F.logsigmoid(sign * wide).masked_fill(targets == IGNORED, 0.0)
    if wide.shape[:-1] != targets.shape:
        raise AttnscopeError(
            f"targets of shape {tuple(targets.shape)} and logits of shape {tuple(logits.shape)}: "
            "expected a class or word for each vector of logits. For a language model the target "
            "of a position is the next word, and -100 where there is none."
        )
    flat = F.cross_entropy(
        wide.flatten(0, -2), targets.flatten(), reduction="none", ignore_index=IGNORED
    )
    return -flat.view(targets.shape)


def _logits(output: object) -> Tensor:
    found: Any = output
    if isinstance(output, Mapping) and "logits" in output:
        found = output["logits"]
    elif hasattr(output, "logits"):
        found = output.logits
    elif isinstance(output, tuple | list) and output:
        found = output[0]
    if not isinstance(found, Tensor):
        raise AttnscopeError(
            f"the model returned a {type(output).__name__}: expected logits, or an output with "
            "them."
        )
    return found


def _mean(values: Tensor, targets: Tensor) -> Tensor:
    """Average over the targets of each row that count."""
    if values.ndim == 1:
        return values
    count = (targets.to(values.device) != IGNORED).sum(dim=-1)
    return values.sum(dim=-1) / count.clamp(min=1)


def _saliency(probe: Probe, targets: Tensor) -> Tensor:
    kept: list[Tensor] = []

    def cut(embeddings: Tensor) -> Tensor:
        kept.append(embeddings.detach().requires_grad_())
        return kept[0]

    with torch.enable_grad():
        output = probe.through(cut)
        # Rows do not see each other in evaluation, so the sum has each row's own derivative.
        total = -_mean(log_likelihood(output, targets), targets).sum()
        (slope,) = torch.autograd.grad(total, kept[0])
    return torch.from_numpy(saliency(array(kept[0]), array(slope)))


def _lexical(probe: Probe, targets: Tensor) -> Tensor:
    length = 1
    made: list[Tensor] = []
    while len(made) < length:

        def only(embeddings: Tensor, position: int = len(made)) -> Tensor:
            nonlocal length
            length = embeddings.shape[1]
            gate = torch.zeros(length, 1, dtype=embeddings.dtype, device=embeddings.device)
            gate[position] = 1
            return embeddings * gate

        made.append(log_likelihood(probe.through(only), targets).exp())
    whole = torch.stack(made, dim=-1)
    return whole.masked_fill((targets.to(whole.device) == IGNORED)[..., None], torch.nan)
