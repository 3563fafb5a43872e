"""The curvature of a loss: top eigenvalues of its Hessian in a block of parameters, and its trace.

Small blocks get the whole Hessian, column by column; large ones the Lanczos method, which needs
nothing but products of the Hessian with vectors (Pearlmutter 1994): H v = ∇(∇L · v).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.needs import there
from attnscope.probes.landscapes.directions import Block, matching, still
from attnscope.probes.landscapes.landscape import PlainLoss

EXACT = 256
"""Up to so many parameters the whole Hessian is made: it costs one product each."""
STEPS = 300
"""Steps of Lanczos before it gives up."""
_TWICE = ("is not implemented", "differentiate twice", "once_differentiable")
"""What PyTorch says when a gradient has no derivative."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """One end of the spectrum of a Hessian.

    Args:
        eigenvalues: from the end inwards: the largest first, or the smallest first.
        parameters: names of the parameters of the block.
        size: number of entries in the block.
        method: how it was found.
        products: products of the Hessian with a vector that this took.
        residuals: ‖H v - λ v‖ of each eigenvalue with its vector of norm 1.
        words: all of this in a sentence.
    """

    eigenvalues: np.ndarray
    parameters: tuple[str, ...]
    size: int
    method: Literal["exact", "lanczos"]
    products: int
    residuals: np.ndarray
    words: str


def sharpness(
    model: nn.Module,
    loss: PlainLoss,
    block: Block = "*",
    *,
    count: int = 1,
    end: Literal["largest", "smallest"] = "largest",
    method: Literal["exact", "lanczos"] | None = None,
    seed: int = 0,
) -> Spectrum:
    """Return eigenvalues at one end of the Hessian of the loss in a block, the others held fixed.

    Args:
        model: comes back as it was; the loss sees it in evaluation mode.
        loss: called as ``loss(model)``.
        block: names of parameters, see :func:`attnscope.probes.directions.matching`.
        count: number of eigenvalues.
        end: the largest (sharpest) or the smallest (most negative curvature).
        method: the whole Hessian or Lanczos; by the size of the block unless given.
        seed: of the vector that Lanczos starts from.
    """
    if end not in ("largest", "smallest"):
        raise AttnscopeError(f"end = {end!r}: expected 'largest' or 'smallest'.")
    if method not in (None, "exact", "lanczos"):
        raise AttnscopeError(f"method = {method!r}: expected 'exact', 'lanczos' or None.")
    with _hessian(model, loss, block) as hessian:
        size = hessian.size
        if not 1 <= count <= size:
            raise AttnscopeError(
                f"count = {count}: expected 1 to {size}, the entries of {_said(block)}."
            )
        exact = method == "exact" or (method is None and size <= EXACT)
        if exact:
            values, vectors = np.linalg.eigh(hessian.whole())
        else:
            values, vectors = _lanczos(hessian, count, end, seed)
        order = np.argsort(values)[:: -1 if end == "largest" else 1][:count]
        values, vectors = values[order], vectors[:, order]
        away = [hessian(v) - value * v for value, v in zip(values, vectors.T, strict=True)]
        residuals = np.linalg.norm(away, axis=1)
        products = hessian.products
    how = "the whole Hessian" if exact else f"Lanczos with {products} products, seed {seed}"
    words = (
        f"{end} {count} of {size:,} eigenvalues of the Hessian in {_said(block)}, by {how}; "
        f"largest residual {residuals.max():.1g}"
    )
    kind: Literal["exact", "lanczos"] = "exact" if exact else "lanczos"
    return Spectrum(values, hessian.names, size, kind, products, residuals, words)


def hessian_trace(
    model: nn.Module, loss: PlainLoss, block: Block = "*", *, samples: int = 32, seed: int = 0
) -> tuple[float, float]:
    """Estimate the trace of the Hessian in a block by Hutchinson's method, and its standard error.

    tr H = E[zᵀ H z] for independent signs z.
    """
    if samples < 2:
        raise AttnscopeError(f"samples = {samples}: expected 2 or more, for a standard error.")
    chance = np.random.default_rng(seed)
    with _hessian(model, loss, block) as hessian:
        signs = chance.choice((-1.0, 1.0), size=(samples, hessian.size))
        found = np.array([z @ hessian(z) for z in signs])
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(samples))


class _Hessian:
    """Products of the Hessian with vectors; one graph of the gradient serves all of them."""

    def __init__(self, names: tuple[str, ...], tensors: list[Tensor], gradient: list[Tensor]):
        self.names, self.tensors, self.gradient, self.products = names, tensors, gradient, 0
        self.size = sum(tensor.numel() for tensor in tensors)

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        self.products += 1
        flat = torch.as_tensor(np.ravel(vector)).to(self.tensors[0])
        pieces = flat.split([tensor.numel() for tensor in self.tensors])
        along = [p.view_as(tensor) for p, tensor in zip(pieces, self.tensors, strict=True)]
        with _second_derivative():
            # A loss that is linear in the block has a gradient without a graph, and H = 0.
            pairs = [(g, v) for g, v in zip(self.gradient, along, strict=True) if g.requires_grad]
            if not pairs:
                return np.zeros(self.size)
            slopes = torch.autograd.grad(
                [g for g, _ in pairs],
                self.tensors,
                [v for _, v in pairs],
                retain_graph=True,
                allow_unused=True,
                materialize_grads=True,
            )
        return torch.cat([slope.reshape(-1) for slope in slopes]).double().cpu().numpy()

    def whole(self) -> np.ndarray:
        columns = np.stack([self(unit) for unit in np.eye(self.size)], axis=1)
        return (columns + columns.T) / 2


@contextmanager
def _hessian(model: nn.Module, loss: PlainLoss, block: Block) -> Iterator[_Hessian]:
    names = matching(model, block)
    tensors: list[Tensor] = [model.get_parameter(name) for name in names]
    trained = [tensor.requires_grad for tensor in tensors]
    with still(model), torch.enable_grad():
        try:
            for tensor in tensors:
                tensor.requires_grad_(True)
            value = loss(model)
            if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
                raise AttnscopeError(
                    f"The loss {value!r} has no gradient in {_said(block)}: expected a tensor with "
                    "one element that depends on the block."
                )
            if not torch.isfinite(value):
                raise AttnscopeError(f"The loss is {value.item()}: expected a finite number.")
            with _second_derivative():
                gradient = torch.autograd.grad(
                    value.reshape(()),
                    tensors,
                    create_graph=True,
                    allow_unused=True,
                    materialize_grads=True,
                )
            yield _Hessian(names, tensors, list(gradient))
        finally:
            for tensor, was in zip(tensors, trained, strict=True):
                tensor.requires_grad_(was)


def _lanczos(hessian: _Hessian, count: int, end: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Ritz values and vectors at one end, by Lanczos with full reorthogonalisation.

    It ends when residuals are small beside the norm of the Hessian, for products are exact to
    rounding only. ARPACK compares them with the eigenvalue itself: next to zero it never ends.
    """
    tolerance = float(np.sqrt(torch.finfo(hessian.tensors[0].dtype).eps))
    chance = np.random.default_rng(seed)
    basis, diagonal, beside = np.empty((0, hessian.size)), [], []  # type: ignore[var-annotated]
    vector = chance.standard_normal(hessian.size)
    for _ in range(min(STEPS, hessian.size)):
        basis = np.vstack([basis, vector / np.linalg.norm(vector)])
        vector = hessian(basis[-1])
        diagonal.append(vector @ basis[-1])
        for _ in range(2):
            vector = vector - (basis @ vector) @ basis
        length = float(np.linalg.norm(vector))
        values, turn = _tridiagonal(diagonal, beside)
        norm = float(np.abs(values).max())
        chosen = slice(None, count) if end == "smallest" else slice(-count, None)
        residuals = length * np.abs(turn[-1, chosen])
        if len(values) >= count and (residuals <= tolerance * norm).all():
            return values[chosen], basis.T @ turn[:, chosen]
        if length <= np.finfo(float).eps * norm:
            # The space found is closed; the search goes on outside it.
            fresh = chance.standard_normal(hessian.size)
            vector, length = fresh - (basis @ fresh) @ basis, 0.0
        beside.append(length)
    raise AttnscopeError(
        f"Lanczos did not find {count} eigenvalues in {hessian.products} products: expected a "
        "smaller count or a block of fewer entries."
    )


@contextmanager
def _second_derivative() -> Iterator[None]:
    """Turn the error of a gradient that has no derivative into a sentence."""
    try:
        yield
    except RuntimeError as error:
        if not any(phrase in str(error) for phrase in _TWICE):
            raise
        first = str(error).splitlines()[0]
        raise AttnscopeError(
            f"The Hessian needs the derivative of a gradient that has none ({first}): expected "
            "attention by plain operations. Call with torch.nn.attention.sdpa_kernel("
            "SDPBackend.MATH), set attn_implementation='eager' in Hugging Face, or "
            "KernelAttention.eager = True."
        ) from error


def _said(block: Block) -> str:
    if block == "*":
        return "all parameters"
    return block if isinstance(block, str) else ", ".join(block)


def _tridiagonal(
    diagonal: Sequence[float], beside: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, rising, and eigenvectors of a symmetric tridiagonal matrix.

    SciPy takes O(n²), NumPy O(n³): a watched model is read without SciPy, and n is some tens there.
    """
    if there("scipy"):
        from scipy.linalg import eigh_tridiagonal

        values, vectors = eigh_tridiagonal(diagonal, beside)
    else:
        full = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        values, vectors = np.linalg.eigh(full)
    return values, vectors
