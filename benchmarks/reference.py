"""Training as one would write it down first: padded batches, ``v[X]``, autograd, a step an epoch.

Slow on purpose and plain on purpose. It shares the data with attnscope and no code, so it is the
yardstick for speed and an oracle for the numbers at once.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from scipy.integrate import solve_ivp
from torch import Tensor


class Reference:
    """Bag-of-words attention of Lu 2021 and its full-batch gradient descent.

    Args:
        ids: words of each sentence, shape ``(sentence, position)``.
        labels: class of each sentence.
        trained: tensors that learn, by name: ``v`` and ``s``; ``U`` of Attn-TC; ``U``, ``b``,
            ``U2`` and ``b2`` of Attn-TL.
        fixed: tensors that do not, by name: ``U`` of Attn-FC.
        mask: true where a position holds a word, if sentences have different lengths.
    """

    def __init__(
        self,
        ids: Tensor,
        labels: Tensor,
        trained: dict[str, Tensor],
        fixed: dict[str, Tensor],
        mask: Tensor | None = None,
    ) -> None:
        self.ids, self.labels, self.mask = ids, labels, mask
        self.trained = {k: t.detach().clone().requires_grad_() for k, t in trained.items()}
        self.tensors = self.trained | {k: t.detach().clone() for k, t in fixed.items()}

    def loss(self) -> Tensor:
        """Compute the mean cross-entropy over all sentences."""
        t = self.tensors
        scores = t["s"][self.ids]
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, -torch.inf)
        weights = torch.softmax(scores, dim=1)
        context = (weights[..., None] * t["v"][self.ids]).sum(dim=1)
        logits = context @ t["U"]
        if "U2" in t:
            logits = torch.relu(logits + t["b"]) @ t["U2"] + t["b2"]
        return F.cross_entropy(logits, self.labels)

    def gradient(self) -> tuple[Tensor, ...]:
        """Differentiate the loss by what is trained."""
        return torch.autograd.grad(self.loss(), list(self.trained.values()))

    def step(self, lr: float) -> None:
        """Take one step of gradient descent."""
        gradient = self.gradient()
        with torch.no_grad():
            for tensor, slope in zip(self.trained.values(), gradient, strict=True):
                tensor.sub_(slope, alpha=lr)

    def flow(self, times: np.ndarray, tolerance: float) -> dict[str, np.ndarray]:
        """Solve dθ/dt = -∇L(θ) by SciPy's DOP853; return each tensor at ``times``."""
        sizes = [t.numel() for t in self.trained.values()]
        start = torch.cat([t.detach().reshape(-1) for t in self.trained.values()])

        def field(_: float, y: np.ndarray) -> np.ndarray:
            with torch.no_grad():
                for tensor, part in zip(
                    self.trained.values(), torch.from_numpy(y).split(sizes), strict=True
                ):
                    tensor.copy_(part.view_as(tensor))
            return -torch.cat([g.reshape(-1) for g in self.gradient()]).numpy()

        span = (0.0, float(times[-1]))
        solution = solve_ivp(
            field, span, start.numpy(), "DOP853", times, rtol=tolerance, atol=tolerance
        )
        parts = np.split(solution.y.T, np.cumsum(sizes)[:-1], axis=1)
        return dict(zip(self.trained, parts, strict=True))
