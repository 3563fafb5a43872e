"""How much each source word helps each target word: saliency of a translation model.

    Δ_{t,l} = -∂(-log p_t(y_t)) / ∂g_l at g = 1,

where the gate g_l multiplies the embedding of source word l (Snell 2021, section 3). More of a
helpful word raises log p, so such a word is positive.

Every t needs a backward pass of its own. But p_t depends on the source through c_t and s_t alone,
so that the output network, most of the work, is gone through once for all t:

    Δ_t = (∂c_t/∂g)ᵀ ∂log p_t/∂c_t + (∂s_t/∂g)ᵀ ∂log p_t/∂s_t.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attnscope.models.seq2seq.model import Seq2Seq, States
from attnscope.models.sequences import check_ids, evaluating, frozen
from attnscope.tasks.sequence_pairs import SequencePairs


def translation_saliency(model: Seq2Seq, pairs: SequencePairs) -> Tensor:
    """Return Δ_{t,l} under teacher forcing, without dropout.

    Args:
        model: left as it is.
        pairs: the batch.

    Returns:
        Shape ``(row, T, L)``; zero where source or target are padded.
    """
    check_ids("source", pairs.source, model.source_vocabulary)
    with torch.enable_grad(), evaluating(model), frozen(model):
        vectors = model.embedding(pairs.source)
        gate = torch.ones_like(vectors[:, :, 0]).requires_grad_()
        states = model.states(pairs, gate[:, :, None] * vectors)
        context = model.context(states, model.attention_weights(states))
        by_context, by_decoder = _through_output(model, context, states, pairs)
        slopes = [
            torch.autograd.grad(
                [context[:, t], states.decoder[:, t]],
                gate,
                [by_context[:, t], by_decoder[:, t]],
                retain_graph=True,
            )[0]
            for t in range(pairs.target.shape[1])
        ]
    return torch.stack(slopes, dim=1)


def _through_output(
    model: Seq2Seq, context: Tensor, states: States, pairs: SequencePairs
) -> tuple[Tensor, Tensor]:
    """Return ∂log p_t/∂c_t and ∂log p_t/∂s_t, zero where the target is padded."""
    here = pairs.target_mask
    if here is None:
        here = torch.ones_like(pairs.target, dtype=torch.bool)
    leaves = [part.detach()[here].requires_grad_() for part in (context, states.decoder)]
    log_p = torch.log_softmax(model.output(*leaves), dim=1)
    right = log_p.gather(1, pairs.target[here][:, None]).sum()
    slopes = torch.autograd.grad(right, leaves)
    spread = [torch.zeros_like(part) for part in (context, states.decoder)]
    for whole, slope in zip(spread, slopes, strict=True):
        whole[here] = slope
    return spread[0], spread[1]
