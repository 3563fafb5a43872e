"""Try to make a certificate lie: random and adversarial layers, and the flows that follow.

    python tests/theory/song2024/certificate_trial.py --layers 5000

A layer is drawn with its kernel, sizes, scales, precision, biases, padding, frozen parts, tokens
(distinct, repeated, nearly equal, permuted sequences, zero) and labels (far away, close to the
outputs, in the worst direction). A certificate lies if

- the gradient of what learns is smaller than the PL inequality with its constant says, or
- the loss of the flow from there is above its bound, while the certificate says that it holds:
  for all time, or for as long as the constant of a dense record stays above half.

Where W^V and outer biases learn alone, outputs are linear in what learns and the flow is a matrix
exponential; its matrix comes from autograd, not from the theory's own. Otherwise `Flow` runs.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from torch.func import functional_call, jacrev

from attnscope.engines import Flow, Linear, Memory, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import MATRICES, KernelAttention
from attnscope.models.kernel_regression import SquaredError
from attnscope.models.kernels import KERNELS
from attnscope.theory.song2024 import Certificate, along, certify, layer_state, pl_constant

POINTS = 13
"""Record points of a flow."""


@dataclass
class Case:
    """A layer, its data, and whether its rows of B are dependent by construction."""

    layer: KernelAttention
    x: torch.Tensor
    y: torch.Tensor
    mask: torch.Tensor | None
    dependent: bool
    kind: str

    def loss(self) -> SquaredError:
        """Return the loss of real tokens, in the precision of the layer."""
        return SquaredError(self.x, self.y, mask=self.mask)


def draw(seed: int, certain: bool = False) -> Case:
    """Draw a layer; ``certain`` ones are wide, with a large W^O and no W^V, as in the existence
    part of Theorem 1, so that many are certified for all time."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)

    def among(*choices):
        return choices[rng.integers(len(choices))]

    dtype = among(torch.float64, torch.float64, torch.float32)
    sequences, n = int(rng.integers(1, 3)), int(rng.integers(1, 5))
    width, heads, d = int(rng.integers(2, 9)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    outputs = among(1, 1, 1, 2, 3)
    if certain:
        width, outputs, d = width + 8, among(1, 1, 2), d + 2
    trained = [name for name in MATRICES if rng.random() < 0.6]
    if rng.random() < 0.7 and "W_V" not in trained:
        trained.append("W_V")
    if rng.random() < 0.3:
        trained = ["W_V"]
    layer = KernelAttention(
        width,
        heads,
        d,
        outputs,
        kernel=among("softmax", "gaussian") if certain else among(*KERNELS),
        trained=trained or ("W_Q",),
        bias=bool(rng.random() < 0.3),
    ).to(dtype)
    scales = {name: 10.0 ** rng.uniform(-1.5, 1.5) for name in MATRICES}
    if rng.random() < 0.2:
        scales[among("W_Q", "W_K")] *= 60
    if certain:
        scales |= {"W_V": 0.0, "W_O": 10.0 ** rng.uniform(0, 6), "W_Q": 1.0}
    with torch.no_grad():
        for name, scale in scales.items():
            layer.get_parameter(name).mul_(scale)
    x = 10.0 ** rng.uniform(-1, 1) * torch.randn(sequences, n, width, dtype=torch.float64)
    kind = among("distinct", "distinct", "repeated", "near", "permuted", "zero")
    if certain:
        kind = "distinct"
    dependent = False
    if kind == "repeated" and n > 1:
        x[0, 1] = x[0, 0]
        dependent = True
    elif kind == "near" and n > 1:
        x[0, 1] = x[0, 0] + 10.0 ** rng.uniform(-16, -2) * torch.randn(width).double()
    elif kind == "permuted" and sequences > 1:
        x[1] = x[0][torch.randperm(n)]
        dependent = True
    elif kind == "zero":
        x[:, 0] = 0
        dependent = layer.b_Q is None and n == 1
    mask = None
    if rng.random() < 0.3:
        mask = torch.rand(sequences, n) < 0.7
        x[~mask] = 1e3 * torch.randn(int((~mask).sum()), width).double()
        dependent = False
    x = x.to(dtype)
    return Case(layer, x, _labels(layer, x, mask, rng), mask, dependent, kind)


def _labels(layer, x, mask, rng) -> torch.Tensor:
    """Return labels far away, close to the outputs, or off in the direction that learns worst."""
    with torch.no_grad():
        out = layer.eval()(x, mask).double()
        away = torch.randn_like(out) * 10.0 ** rng.choice([0.0, 1.0, -4.0, -8.0, -12.0])
        if rng.random() < 0.3:
            b = layer_state(layer, x).features
            left = np.linalg.svd(b)[0][:, -1]
            away = torch.from_numpy(left).reshape(*x.shape[:2], *[1] * (out.ndim - 2)) * away.std(
                correction=0
            ).clamp(min=1e-12)
            away = away.expand_as(out)
        y = out - away
        if mask is not None:
            y = torch.where(mask.reshape(*mask.shape, *[1] * (y.ndim - 2)), y, math.nan)
    return y.to(x.dtype)


def judge(case: Case) -> tuple[str, str]:
    """Return what was certified, and what is wrong with it; empty if nothing is."""
    found = certify(case.layer, case.x, case.y, case.mask)
    if found.rate == 0:
        return "nothing", ""
    said = "for all time" if found.for_all_time else "at the start"
    if case.dependent:
        return said, f"rows of B are equal, sigma_min = {found.sigma_min:.3g}"
    exact = _in_double(case)
    return said, _gradient(exact, found) or (
        _closed_form(exact, found) if _is_linear(exact) else _flow(case, found)
    )


def _in_double(case: Case) -> Case:
    if case.x.dtype == torch.float64:
        return case
    layer = KernelAttention(
        case.layer.width,
        case.layer.heads,
        case.layer.head_width,
        case.layer.outputs,
        kernel=case.layer.kernel,
        bias=case.layer.b_Q is not None,
    ).double()
    layer.load_state_dict(case.layer.state_dict())
    for mine, theirs in zip(layer.parameters(), case.layer.parameters(), strict=True):
        mine.requires_grad_(theirs.requires_grad)
    return Case(layer, case.x.double(), case.y.double(), case.mask, case.dependent, case.kind)


def _gradient(case: Case, found: Certificate) -> str:
    f = case.loss()(case.layer)
    learn = [p for p in case.layer.parameters() if p.requires_grad]
    parts = torch.autograd.grad(f, learn, allow_unused=True)
    square = sum(float(part.square().sum()) for part in parts if part is not None)
    least = 2 * found.rate * float(f.detach())
    if float(f.detach()) > found.loss * (1 + 1e-12):
        return f"the loss is {float(f.detach()):.17g}, certified {found.loss:.17g}"
    # Where the residual itself is rounding, so is the gradient.
    if square < least * (1 - 1e-7) and float(f.detach()) > 1e4 * found.floor:
        return f"|gradient|^2 = {square:.6g} below {least:.6g}"
    return ""


def _moving(case: Case) -> set[str]:
    return {name for name, p in case.layer.named_parameters() if p.requires_grad}


def _is_linear(case: Case) -> bool:
    return _moving(case) <= {"W_V", "b_V", "b_O"}


def _closed_form(case: Case, found: Certificate) -> str:
    moving = _moving(case)
    if not found.for_all_time:
        return "a quadratic loss is not certified for all time"
    values = {name: p.detach() for name, p in case.layer.named_parameters()}

    def residual(part):
        whole = functional_call(case.layer, values | part, (case.x, case.mask))
        return whole if case.mask is None else whole[case.mask]

    case.layer.eager = True
    parts = {name: values[name] for name in moving}
    jacobian = jacrev(residual)(parts)
    start = case.loss().residual(case.layer).detach().numpy().ravel()
    rows = np.concatenate(
        [j.detach().numpy().reshape(len(start), -1) for j in jacobian.values()], 1
    )
    left, sizes, _ = np.linalg.svd(rows)
    rates = np.zeros(len(start))
    rates[: len(sizes)] = sizes**2
    for time in np.array([0.1, 1.0, 10.0, 30.0]) / found.rate:
        f = 0.5 * float(np.sum((np.exp(-rates * time) * (left.T @ start)) ** 2))
        if f > found.bound(time) * (1 + 1e-7):
            return f"closed form: {f:.6g} above {float(found.bound(time)):.6g} at {time:.3g}"
    return ""


def _flow(case: Case, found: Certificate) -> str:
    """Run the flow in the layer's own precision, until what it says is rounding or 3 rates."""
    layer, loss = case.layer, case.loss()
    end = _end(case, found)
    single = case.x.dtype == torch.float32

    def pl(module):
        return case.x.new_tensor(pl_constant(layer_state(module, case.x, case.mask)))

    def floor(module):
        return case.x.new_tensor(certify(module, case.x, case.y, case.mask).floor)

    readings = (Observable("loss", loss), Observable("pl", pl), Observable("floor", floor))
    memory, first = Memory(), [p.detach().clone() for p in layer.parameters()]
    # Weights that move by little, for labels that are close or a W^O that is large, need a
    # tolerance that is small beside their way.
    way = min(1.0, 2 * math.sqrt(found.loss / found.rate) / (1 + case.x.numel()))
    accuracy = 1e-5 if single else 1e-7
    flow = Flow(rtol=accuracy, atol=max(accuracy * way, 1e-30), max_steps=60)
    try:
        flow.run(layer, loss, time=end, record=[Record(readings, Linear(POINTS))], sink=memory)
    finally:
        with torch.no_grad():
            for mine, was in zip(layer.parameters(), first, strict=True):
                mine.copy_(was)
    f, mu, least = (memory.arrays[0][name] for name in ("loss", "pl", "floor"))
    reached = np.isfinite(f)
    f, mu, least, times = (part[reached] for part in (f, mu, least, memory.times[0]))
    if found.for_all_time and not single and (mu < found.rate / 2 * (1 - 1e-6)).any():
        return f"the constant fell to {mu.min() / found.rate:.3g} of the rate"
    held = found.for_all_time | along(times, f, mu, found.rate).certified
    # What the solver's tolerance does to outputs is what rounding at that unit would do.
    unsure = least * max(1.0, accuracy / torch.finfo(case.x.dtype).eps) ** 2
    over = f - found.bound(times) * (1 + 100 * accuracy) - 10 * unsure
    if (over[held] > 0).any():
        at = int(np.argmax(np.where(held, over, -np.inf)))
        return f"flow: {f[at]:.6g} above {float(found.bound(times[at])):.6g} at {times[at]:.3g}"
    return ""


def _end(case: Case, found: Certificate) -> float:
    """Return a time that a flow of few steps reaches: three e-folds, or as many of the largest."""
    b = layer_state(case.layer, case.x, case.mask)
    largest = (np.linalg.norm(b.features, 2) * np.linalg.norm(b.w_o)) ** 2
    return min(3 / max(found.rate, 1e-300), (300 if found.for_all_time else 20) / largest)


def main() -> None:
    """Draw, judge and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    count, lies, refused = Counter(), [], Counter()
    for seed in range(options.first, options.first + options.layers):
        case = draw(seed, certain=seed % 3 == 0)
        try:
            said, wrong = judge(case)
        except AttnscopeError as error:
            refused[str(error).split(":")[0][:60]] += 1
            continue
        count[said] += 1
        if wrong:
            lies.append(seed)
            print(
                f"seed {seed} ({case.kind}, {case.layer.kernel}, {case.x.dtype}): {said}; {wrong}"
            )
    print(f"{options.layers} layers: {dict(count)}, refused {dict(refused)}; lies: {len(lies)}")


if __name__ == "__main__":
    main()
