"""The callback for Lightning: steps of the optimizer, their losses and gradients."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.trajectory import RunFolder, open_run
from watched_toys import Reader

pytestmark = pytest.mark.filterwarnings("ignore")
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lightning.pytorch import LightningModule, Trainer

        from attnscope.watching.lightning import WatchCallback
except ImportError:
    pytest.skip("lightning is not installed", allow_module_level=True)

BATCHES, PARTS = 12, 3
IDS = torch.randint(0, 11, (4 * BATCHES, 6), generator=torch.Generator().manual_seed(1))


class Module(LightningModule):
    """A small reader; keeps its losses, and gradients as its optimizer has got them."""

    def __init__(self, break_at: int = -1) -> None:
        super().__init__()
        self.reader, self.break_at = Reader(), break_at
        self.losses: list[float] = []
        self.norms: list[float] = []

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.reader(ids)
        return logits

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        if index == self.break_at:
            raise ZeroDivisionError("in the loop")
        loss = nn.functional.cross_entropy(self(batch).flatten(0, 1), batch.flatten())
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch: Tensor, index: int) -> None:
        self(batch[:1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)

        def hear(*_: object) -> None:
            gradient = self.reader.attention.out.weight.grad
            assert gradient is not None
            self.norms.append(gradient.norm().item())

        optimizer.register_step_post_hook(hear)
        return optimizer


def fit(folder: Path, *callbacks: Any, break_at: int = -1) -> Module:
    torch.manual_seed(0)
    module = Module(break_at)
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=1,
        accumulate_grad_batches=PARTS,
        gradient_clip_val=0.05,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        callbacks=list(callbacks),
        num_sanity_val_steps=1,
        val_check_interval=4,
    )
    loaders = [torch.utils.data.DataLoader(IDS, batch_size=4) for _ in range(2)]
    trainer.fit(module, *loaders)
    return module


def test_a_step_is_a_step_of_the_optimizer(tmp_path: Path) -> None:
    watching = WatchCallback(
        tmp_path / "run",
        ["gradient_norm", "attention"],
        every=1,
        probe=IDS[:2],
        attention="reader.attention:weights",
    )
    module = fit(tmp_path, watching)
    tree = open_run(tmp_path / "run")
    assert tree.attrs["status"] == "finished: the run is complete"
    seen = tree["observables"]
    steps = BATCHES // PARTS
    assert seen["time"].to_numpy().tolist() == list(range(steps + 1))
    losses = seen["loss"].to_numpy()[0]
    assert np.isnan(losses[0])
    expected = np.array(module.losses).reshape(steps, PARTS).mean(axis=1)
    assert np.allclose(losses[1:], expected, rtol=1e-6)
    norms = seen["gradient_norm"].to_numpy()[0, :, 0, 3]
    assert np.isnan(norms[0])
    # Clipped: all gradients together have norm 0.05.
    assert max(module.norms) < 0.05
    assert np.allclose(norms[1:], module.norms, rtol=1e-6)
    module.reader.eval()
    module(IDS[:2])
    last = seen["attention"].to_numpy()[0, -1, 0]
    assert np.array_equal(last, module.reader.attention.weights.detach().numpy())


def test_training_is_the_same_watched_or_not(tmp_path: Path) -> None:
    alone = fit(tmp_path)
    watched = fit(
        tmp_path,
        WatchCallback(tmp_path / "run", every=1, attention="reader.attention:weights"),
    )
    assert watched.losses == alone.losses
    for name, value in watched.state_dict().items():
        assert torch.equal(value, alone.state_dict()[name]), name
    assert not any(module._forward_hooks for module in watched.modules())
    assert np.isfinite(open_run(tmp_path / "run")["observables/entropy"].to_numpy()[0, 1:]).all()


def test_a_training_that_breaks_off_keeps_what_was_read(tmp_path: Path) -> None:
    watching = WatchCallback(tmp_path / "run", [])
    with pytest.raises(ZeroDivisionError, match="in the loop"):
        fit(tmp_path, watching, break_at=7)
    state = RunFolder(tmp_path / "run").state(0)
    assert state["status"] == "training ended with ZeroDivisionError at step 2"
    losses = open_run(tmp_path / "run")["observables/loss"].to_numpy()[0]
    assert np.isfinite(losses).tolist() == [False, True, True]


def test_an_option_that_watch_does_not_have_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="evry"):
        WatchCallback("run", evry=3)


def test_without_the_library_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "attnscope.watching.lightning")
    with pytest.raises(AttnscopeError, match="needs Lightning, which is not installed"):
        importlib.import_module("attnscope.watching.lightning")
