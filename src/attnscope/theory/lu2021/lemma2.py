"""Lemma 2 of Lu 2021 as a system of its own: topic words move, all other words stand still.

    dv_t/dt = (|Ψ_t|/|Ψ|) ⟨ h(v̄(χ); y) exp(s_t)/Z(χ) ⟩                                  (eq 7)
    ds_t/dt = (v_t - ⟨v̄(χ∖t)⟩)ᵀ dv_t/dt / ⟨ (exp(s_t) + Z(χ∖t)) / Z(χ∖t) ⟩              (eq 8)

in time = learning rate × step. The paper calls h the gradient of the loss, but its signs need the
*negative* gradient, for softmax(Uᵀv̄) and cross-entropy h = U (onehot(y) - softmax(Uᵀv̄)). Here
h, and the motion of a trained classifier, come from differentiating the mean loss over Ψ.

Eq (8) replaces the mean of a product in eq (6) by a product of means. :func:`reduced_flow` keeps
eq (6), so the two differ by that step alone, and :func:`reduced_flow` differs from a full run by
Assumption 1 alone.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from attnscope.errors import AttnscopeError
from attnscope.models.classifiers import Classifier
from attnscope.models.pooling import cross_entropy
from attnscope.tasks.bags import Bags
from attnscope.theory.arrays import Numbers, float64, word_numbers
from attnscope.theory.lu2021.psi import PsiSets

RTOL, ATOL = 1e-9, 1e-11
"""Tolerances of the solver: far below every approximation that is studied with it."""

MAX_EVALUATIONS = 20_000
"""A linear classifier needs some hundreds, whatever the time. A ReLU bends the field at a kink for
each sentence and hidden unit; a flow that slides along kinks would keep the solver busy forever."""


@dataclass(frozen=True, eq=False)
class TopicWordFlow:
    """What the reduced system predicts.

    Args:
        times: shape ``(step,)``.
        scores: s_t, shape ``(step, word)``.
        embeddings: v_t, shape ``(step, word, dim)``.
    """

    times: np.ndarray
    scores: np.ndarray
    embeddings: np.ndarray


def reduced_flow(
    scores: Numbers,
    embeddings: Numbers,
    classifier: Classifier,
    bags: Bags,
    words: Numbers,
    times: Numbers,
) -> TopicWordFlow:
    """Integrate eqs (5) and (6), exact sums over the sentences, for the listed words alone.

    Args:
        scores: initial s_w of all words, shape ``(word,)``.
        embeddings: initial v_w of all words, shape ``(word, dim)``.
        classifier: what reads the context vector, at its initial state; it is not changed.
            What of it is trainable moves too.
        bags: the training sentences.
        words: the words that move.
        times: where to read the solution, ascending from 0 or later.

    Raises:
        AttnscopeError: the solver does not get to the end in reasonable time, as happens with the
            kinks of the two-layer ReLU classifier in long runs.
    """
    return _integrate(_TopicWords(scores, embeddings, classifier, bags, words), times, None)


def lemma2_flow(
    scores: Numbers,
    embeddings: Numbers,
    classifier: Classifier,
    bags: Bags,
    words: Numbers,
    times: Numbers,
) -> TopicWordFlow:
    """Integrate eqs (7) and (8) as printed, for the listed words alone.

    The arguments are those of :func:`reduced_flow`.

    Raises:
        AttnscopeError: a sentence holds two listed words, or one of them twice; then χ∖t moves,
            and eq (8) does not hold.
    """
    system = _TopicWords(scores, embeddings, classifier, bags, words)
    most = int(system.counts.sum(dim=1).max())
    if most > 1:
        raise AttnscopeError(
            f"a training sentence holds {most} of the listed words: expected one at most, as in "
            "section 3 of Lu 2021. reduced_flow knows no such limit."
        )
    around = PsiSets(bags, words).averages(scores, embeddings)
    inverse_z, context = torch.from_numpy(around.inverse_z), torch.from_numpy(around.context)

    def score_velocity(velocity: Tensor) -> Tensor:
        pull = ((system.embedding.detach() - context) * velocity).sum(dim=1)
        return pull / (1 + system.score.detach().exp() * inverse_z)

    return _integrate(system, times, score_velocity)


class _TopicWords(nn.Module):
    """Scores and embeddings of the listed words, among sums over the others that never change."""

    def __init__(
        self,
        scores: Numbers,
        embeddings: Numbers,
        classifier: Classifier,
        bags: Bags,
        words: Numbers,
    ) -> None:
        super().__init__()
        listed = torch.from_numpy(word_numbers(words))
        all_scores = torch.from_numpy(float64(scores))
        all_embeddings = torch.from_numpy(float64(embeddings))
        # The scores come first: the solver's state begins with them.
        self.score = nn.Parameter(all_scores[listed].clone())
        self.embedding = nn.Parameter(all_embeddings[listed].clone())
        self.classifier = copy.deepcopy(classifier).double()
        self.labels = bags.labels
        still = all_scores.exp()
        still[listed] = 0.0
        counts = bags.counts(torch.float64)
        self.still_sum = counts @ (still[:, None] * all_embeddings)
        self.still_z = counts @ still
        mine = torch.zeros(bags.vocabulary, len(listed), dtype=torch.float64)
        mine[listed, torch.arange(len(listed))] = 1.0
        self.counts = counts @ mine

    def forward(self) -> Tensor:
        """Return the mean cross-entropy over the training sentences."""
        factors = self.score.exp()
        z = self.still_z + self.counts @ factors
        context = (self.still_sum + self.counts @ (factors[:, None] * self.embedding)) / z[:, None]
        logits = self.classifier.rest(context @ self.classifier.weight)
        return cross_entropy(logits, self.labels)


def _integrate(
    system: _TopicWords, times: Numbers, score_velocity: Callable[[Tensor], Tensor] | None
) -> TopicWordFlow:
    times = float64(times)
    count, shape = system.score.numel(), system.embedding.shape
    end = count + system.embedding.numel()
    moving = [p for p in system.parameters() if p.requires_grad]

    evaluations = itertools.count(1)

    def velocity(time: float, state: np.ndarray) -> np.ndarray:
        if next(evaluations) > MAX_EVALUATIONS:
            raise AttnscopeError(
                f"the topic words' flow had only come to time {time:g} of {times[-1]:g} after "
                f"{MAX_EVALUATIONS} evaluations: expected a smooth classifier, or an earlier end."
            )
        vector_to_parameters(torch.from_numpy(state), moving)
        moved = -parameters_to_vector(torch.autograd.grad(system(), moving))
        if score_velocity is not None:
            moved[:count] = score_velocity(moved[count:end].view(shape))
        return moved.numpy()

    start = parameters_to_vector(moving).detach().numpy()
    solution = solve_ivp(
        velocity, (0.0, times[-1]), start, "DOP853", t_eval=times, rtol=RTOL, atol=ATOL
    )
    if not solution.success:
        raise AttnscopeError(f"the topic words' flow broke down: {solution.message}")
    states = solution.y.T
    return TopicWordFlow(times, states[:, :count], states[:, count:end].reshape(len(times), *shape))
