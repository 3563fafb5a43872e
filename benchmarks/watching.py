"""What watching a model costs, and whether what is recorded is what the model did.

The recorder's share of a step is its own processor time, counted around its calls inside real
training; the same stopwatch counts calls that do nothing in a training that is not watched, and
that is taken off. nnsight and TransformerLens are compared if installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.trajectory import open_run
from attnscope.watching import Every, Scope, watch
from harness import Measured, Row

BATCH, LENGTH, WIDTH, WORDS = 8, 16, 32, 50
STEPS = 50_000
READINGS = (
    "weight_norm",
    "stable_rank",
    "update_ratio",
    "gradient_norm",
    "query_key_gradient_ratio",
    "block_gradient_norm",
)


class Attention(nn.Module):
    """One head, written down; it returns its weights too."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return what was mixed, and the weights."""
        q, k, v = (part(x)[:, None] for part in (self.q, self.k, self.v))
        weights = torch.softmax(q @ k.transpose(-1, -2) / WIDTH**0.5, dim=-1)
        return self.o((weights @ v)[:, 0]), weights


class Small(nn.Module):
    """One layer of attention between an embedding and a classifier of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.attention, self.head = Attention(), nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits of words."""
        x = self.words(ids)
        logits: Tensor = self.head(x + self.attention(x)[0])
        return logits


class Deep(nn.Module):
    """Six layers of PyTorch's own encoder."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
        self.words = nn.Embedding(WORDS, width)
        self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.head = nn.Linear(width, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits of words."""
        logits: Tensor = self.head(self.layers(self.words(ids)))
        return logits


class Training:
    """A model, an optimizer and one batch."""

    def __init__(self, model: nn.Module, rows: int = BATCH, length: int = LENGTH) -> None:
        self.model = model
        self.ids = torch.randint(0, WORDS, (rows, length))
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(self) -> Tensor:
        """Take one step of Adam; return its loss."""
        loss = nn.functional.cross_entropy(self.model(self.ids).flatten(0, 1), self.ids.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss


class Stopwatch:
    """Adds up the processor time of calls."""

    def __init__(self) -> None:
        self.spent = 0.0

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time counted."""

        def timed(*args: Any, **options: Any) -> Any:
            start = time.thread_time()
            made = function(*args, **options)
            self.spent += time.thread_time() - start
            return made

        return timed

    def take(self) -> float:
        """Return what was added up, and begin anew."""
        spent, self.spent = self.spent, 0.0
        return spent


def entered(training: Training, folder: str, record: list[Any], **options: Any) -> Scope:
    """Begin a recording without its introduction."""
    scope = watch(training.model, Path(folder) / "run", record, **options)
    scope._introduction = ""
    return scope.__enter__()


def one_attention(rounds: int = 25, steps: int = 40) -> Measured:
    """Record one attention tensor at every step, in blocks of steps with and without."""
    torch.manual_seed(0)
    alone, watched = Training(Small()), Training(Small())
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        scope = entered(watched, folder, [Every(1, "attention")], attention="attention")
        for _ in range(30):
            scope.step(watched.step())
        # A second hook in its place times it, so that what calling it costs is in; and one that
        # does nothing stands in the other model, as cold as ours.
        hooks = watched.model.attention._forward_hooks
        for key, function in list(hooks.items()):
            hooks[key] = stopwatch(function)
        alone.model.attention.register_forward_hook(stopwatch(lambda *_: None))
        take, nothing = stopwatch(scope.step), stopwatch(lambda loss: loss.item())
        own, empty, step = [], [], []
        for _ in range(rounds):
            for _ in range(steps):
                start = time.thread_time()
                loss = alone.step()
                nothing(loss)
                step.append(time.thread_time() - start)
                empty.append(stopwatch.take())
            for _ in range(steps):
                take(watched.step())
                own.append(stopwatch.take())
        scope.__exit__(None, None, None)
    # By quartiles: what one step costs on a machine that is more or less to itself.
    parts = [quantiles(kept)[:2] for kept in (step, own, empty)]
    shares = [(mine - bare) / (whole - bare) for whole, mine, bare in zip(*parts, strict=True)]
    (whole, _), (mine, _), (bare, _) = parts
    how = (
        f"{shares[0]:.1%} of the step by lower quartiles, {shares[1]:.1%} by medians of "
        f"{rounds * steps:,} steps; reading the loss is in both"
    )
    return Measured(whole - bare, mine - bare, how)


def weights(readings: int = 3) -> Measured:
    """Read all weights and gradients every 100 steps; only steps around the readings are taken."""
    torch.manual_seed(0)
    training, stopwatch = Training(Deep(), 8, 32), Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        scope = watch(
            training.model, Path(folder) / "run", READINGS, every=100, optimizer=training.optimizer
        )
        scope._introduction = ""
        scope._hear_optimizer = stopwatch(scope._hear_optimizer)  # type: ignore[method-assign]
        scope.__enter__()
        take = stopwatch(scope.step)
        plain, usual, read = [], [], []
        for _ in range(readings):
            for _ in range(10):
                start = time.thread_time()
                loss = training.step()
                between = time.thread_time()
                take(loss)
                plain.append(between - start)
                usual.append(stopwatch.take())
            # The step before a reading copies the weights, the next copies gradients and reads.
            scope.count += 100 - scope.count % 100 - 2
            scope._prepare(scope.count + 1)
            stopwatch.take()
            for _ in range(2):
                take(training.step())
            read.append(stopwatch.take())
        scope.__exit__(None, None, None)
    step, each = median(plain), median(read)
    cost = (98 * median(usual) + each) / 100
    how = (
        f"{cost / step:.1%} of the steps: a step takes {1e3 * step:.1f} ms, a reading "
        f"{1e3 * each:.1f} ms ({readings} taken), other steps {1e6 * median(usual):.0f} us"
    )
    return Measured(step, cost, how)


def other_tool(name: str, rounds: int = 300) -> Measured:
    """Compare what a recorded forward pass costs above a plain one, pass by pass in turns."""
    torch.manual_seed(0)
    small, watched = Training(Small()), Training(Small())
    plain = partial(small.model, small.ids)
    make = {"nnsight": nnsight_pair, "TransformerLens": lens_pair}[name]
    without, recorded = make(small, plain)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        scope = entered(watched, folder, [Every(1, "attention")], attention="attention")

        def ours() -> None:
            watched.model(watched.ids)
            scope.step(1.0)

        # Each is timed right after a plain pass of the same model, whatever ran before that.
        calls = ((plain, plain), (plain, ours), (without, without), (without, recorded))
        times: list[list[float]] = [[] for _ in calls]
        for turn in range(rounds + 10):
            for (before, function), kept in zip(calls, times, strict=True):
                before()
                start = time.thread_time()
                function()
                if turn >= 10:
                    kept.append(time.thread_time() - start)
        scope.__exit__(None, None, None)
    # Where others use the machine too, a pass that was interrupted finds the caches empty.
    bare, own, their_bare, theirs = (quantiles(kept)[0] for kept in times)
    how = f"above a plain forward pass, lower quartiles of {rounds} passes of each in turns"
    return Measured(theirs - their_bare, own - bare, how)


def nnsight_pair(small: Training, plain: Callable[[], Any]) -> tuple[Callable[[], Any], ...]:
    """A trace of the same model with one save."""
    from nnsight import NNsight

    model, ids = NNsight(small.model), small.ids

    def trace() -> Tensor:
        with model.trace(ids):
            weights = model.attention.output[1].save()
        return weights

    return plain, trace


def lens_pair(small: Training, _: Callable[[], Any]) -> tuple[Callable[[], Any], ...]:
    """A model of TransformerLens's own of the same size; it does not take any module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformer_lens.config import TransformerBridgeConfig
        from transformer_lens.model_bridge import TransformerBridge

        config = TransformerBridgeConfig(
            d_model=WIDTH,
            d_head=WIDTH,
            n_heads=1,
            n_layers=1,
            n_ctx=LENGTH,
            d_vocab=WORDS,
            attn_only=True,
            normalization_type=None,
            architecture="TransformerLensNative",
        )
        bridge = TransformerBridge.boot_native(config)
    return partial(bridge, small.ids), partial(bridge.run_with_cache, small.ids)


CHILD = """
import os, sys, torch
from attnscope.watching import watch
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
def weight(model):
    return model.weight
with watch(model, sys.argv[1], [weight], every=1, attention=lambda m: []) as scope:
    for step in range({steps}):
        scope.step(0.5)
        if step + 1 in ({steps} // 10, {steps}):
            print("MB", resident())
"""


def memory() -> Measured:
    """Record a matrix and a loss at every step in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CHILD.format(steps=STEPS), f"{folder}/run"],
            capture_output=True,
            text=True,
            check=True,
        )
    early, late = (float(x.split()[1]) for x in done.stdout.splitlines() if x.startswith("MB"))
    return Measured(early, late, "a 32 x 32 matrix and the loss at every step")


def exact() -> Measured:
    """Compare recorded attention with what the model itself says, in single precision."""
    with tempfile.TemporaryDirectory() as folder:
        found = differences(folder)
    how = "; ".join(f"{name} {value:.1e}" for name, value in found.items())
    return Measured(1e-6, max(found.values()), f"largest difference of a weight: {how}")


def differences(folder: str) -> dict[str, float]:
    torch.manual_seed(0)
    found = {}
    small = Training(Small())
    entered(small, f"{folder}/a", ["attention"], probe=small.ids, attention="attention").__exit__(
        None, None, None
    )
    own = small.model.attention(small.model.words(small.ids))[1]
    found["own module"] = difference(f"{folder}/a/run", [own])
    deep = Training(Deep())
    entered(deep, f"{folder}/b", ["attention"], probe=deep.ids).__exit__(None, None, None)
    layers, x = [], deep.model.eval().words(deep.ids)
    for layer in deep.model.layers.layers:
        layers.append(layer.self_attn(x, x, x, average_attn_weights=False)[1])
        x = layer(x)
    found["nn.TransformerEncoder"] = difference(f"{folder}/b/run", layers)
    try:
        from transformers import GPT2Config, GPT2Model
    except ImportError:
        pass
    else:
        ids = {"bos_token_id": None, "eos_token_id": None}
        config = GPT2Config(
            n_layer=2, n_head=4, n_embd=64, vocab_size=WORDS, n_positions=LENGTH, **ids
        )
        model = GPT2Model(config).eval()
        gpt = Training(model)
        entered(gpt, f"{folder}/c", ["attention"], probe={"input_ids": gpt.ids}).__exit__(
            None, None, None
        )
        model.set_attn_implementation("eager")
        weights = model(input_ids=gpt.ids, output_attentions=True).attentions
        found["GPT-2 under sdpa"] = difference(f"{folder}/c/run", list(weights))
    return found


def difference(run: str, own: list[Tensor]) -> float:
    recorded = torch.from_numpy(open_run(run)["observables/attention"].to_numpy()[0, 0])
    return float((recorded - torch.stack(own).detach()).abs().max())


CALLS = "Python calls between the steps, out of the cache"
ROWS = (
    Row("watching.attention", "recording attention at every step, small model", "the step",
        CALLS, one_attention),
    Row("watching.weights", "recording all weights and gradients every 100 steps, 6 layers",
        "the step", "memory bandwidth", weights),
    Row("watching.nnsight", "a recorded forward pass, above a plain one", "nnsight, one save",
        CALLS, partial(other_tool, "nnsight")),
    Row("watching.transformer_lens", "a recorded forward pass, above a plain one",
        "TransformerLens, run_with_cache", CALLS, partial(other_tool, "TransformerLens")),
    Row("watching.memory", f"memory after {STEPS:,} recorded steps", f"after {STEPS // 10:,}",
        "the buffers", memory, "MB"),
    Row("watching.exact", "recorded attention against the model's own", "1e-6", "rounding",
        exact, "weight"),
)  # fmt: skip
