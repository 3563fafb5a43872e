"""Sharpness: the largest curvature of the loss on the probe batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from attnscope.probes.landscapes.sharpness import sharpness
from attnscope.watching.moment import Moment, Reading
from attnscope.watching.readings.lexical import IGNORED, log_likelihood
from attnscope.watching.readings.offer import NO_PROBE, Offer, WatchedModel
from attnscope.watching.undisturbed import bare, undisturbed


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the reading of this family; it costs some twenty gradients, so it has to be named."""
    probe, targets = watched.probe, watched.targets
    lacks = "" if probe else NO_PROBE
    lacks = lacks or ("" if targets is not None else "right answers: targets=...")

    def read(moment: Moment) -> float:
        assert probe is not None
        assert targets is not None
        counted = targets != IGNORED

        def loss(_: nn.Module) -> Tensor:
            likely = log_likelihood(probe.run(), targets)
            return -likely[counted.to(likely.device)].mean()

        model = bare(moment.model)
        # Fused attention has no second derivative.
        with undisturbed(model), sdpa_kernel(SDPBackend.MATH), torch.enable_grad():
            return float(sharpness(model, loss).eigenvalues[0])

    reading = Reading(
        "sharpness",
        read,
        (),
        frozenset({"probe"}),
        meaning="largest eigenvalue of the Hessian of the loss on the probe batch; plain gradient "
        "descent is stable below 2 over the learning rate",
    )
    return [Offer(reading, False, lacks)]
