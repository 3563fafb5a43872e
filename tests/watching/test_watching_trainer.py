"""The callback for transformers.Trainer: steps of the optimizer, their losses and gradients."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.trajectory import RunFolder, open_run

pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate, which its Trainer needs, is not installed")

from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from attnscope.watching.trainer import WatchCallback

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
STEPS, PARTS = 5, 3
IDS = torch.randint(0, 16, (64, 6), generator=torch.Generator().manual_seed(1))
NO_WORDS = {"bos_token_id": None, "eos_token_id": None}
WHOLE = "transformer.h.0.attn.c_attn.weight"


@pytest.fixture(autouse=True)
def _no_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    # The folder of tests of that name looks like the library to transformers.
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)


def small() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(
            n_layer=1, n_embd=8, n_head=2, vocab_size=16, n_positions=8, use_cache=False, **NO_WORDS
        )
    )


class Listening(Trainer):
    """Keeps the loss of every batch, as the Trainer itself counts it."""

    def training_step(self, *args: Any, **options: Any) -> torch.Tensor:
        loss: torch.Tensor = super().training_step(*args, **options)
        self.__dict__.setdefault("heard", []).append(loss.item())
        return loss


class Gradients(TrainerCallback):
    """Keeps the gradient norm of queries at every step of the optimizer."""

    def __init__(self) -> None:
        self.norms: list[float] = []

    def on_pre_optimizer_step(self, *_: Any, model: Any, **__: Any) -> None:
        self.norms.append(model.get_parameter(WHOLE).grad[:, :8].norm().item())


def trainer(folder: Path, *callbacks: TrainerCallback, rows: int = 64, **options: Any) -> Listening:
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        save_strategy="no",
        logging_strategy="no",
        max_steps=STEPS,
        learning_rate=0.01,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=PARTS,
        max_grad_norm=0.5,
        **options,
    )
    data = [{"input_ids": ids, "labels": ids} for ids in IDS[:rows]]
    return Listening(small(), arguments, train_dataset=data, callbacks=list(callbacks))


def test_a_step_is_a_step_of_the_optimizer(tmp_path: Path) -> None:
    gradients = Gradients()
    watching = WatchCallback(tmp_path / "run", ["gradient_norm", "entropy"], every=1, probe=IDS[:2])
    watched = trainer(tmp_path, watching, gradients)
    watched.train()
    assert len(watched.heard) == STEPS * PARTS
    tree = open_run(tmp_path / "run")
    assert tree.attrs["status"] == "finished: the run is complete"
    seen = tree["observables"]
    assert seen["time"].to_numpy().tolist() == list(range(STEPS + 1))
    losses = seen["loss"].to_numpy()[0]
    assert np.isnan(losses[0])
    expected = np.array(watched.heard).reshape(STEPS, PARTS).sum(axis=1)
    assert np.allclose(losses[1:], expected, rtol=1e-6)
    norms = seen["gradient_norm"].to_numpy()[0, :, 0, 0]
    assert np.isnan(norms[0])
    assert np.allclose(norms[1:], gradients.norms, rtol=1e-6)
    entropy = seen["entropy"].to_numpy()
    assert entropy.shape == (1, STEPS + 1, 1, 2)
    assert np.isfinite(entropy).all()


def test_losses_of_a_model_that_takes_no_count_of_words_are_averaged(tmp_path: Path) -> None:
    class Plain(GPT2LMHeadModel):
        def forward(self, input_ids: torch.Tensor, labels: Any = None) -> Any:  # type: ignore[override]
            return super().forward(input_ids=input_ids, labels=labels)

    watched = trainer(tmp_path, WatchCallback(tmp_path / "run", [], probe=IDS[:2]))
    watched.model.__class__ = Plain
    watched.model_accepts_loss_kwargs = False
    watched.train()
    losses = open_run(tmp_path / "run")["observables/loss"].to_numpy()[0, 1:]
    expected = np.array(watched.heard).reshape(STEPS, PARTS).sum(axis=1)
    assert np.allclose(losses, expected, rtol=1e-6)


def test_training_is_the_same_watched_or_not(tmp_path: Path) -> None:
    alone = trainer(tmp_path)
    alone.train()
    watched = trainer(tmp_path, WatchCallback(tmp_path / "run", every=1, probe=IDS[:2]))
    watched.train()
    assert watched.heard == alone.heard
    for name, value in watched.model.state_dict().items():
        assert torch.equal(value, alone.model.state_dict()[name]), name
    assert not any(module._forward_hooks for module in watched.model.modules())


def test_a_training_that_breaks_off_keeps_what_was_read(tmp_path: Path) -> None:
    class Break(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 3:
                raise ZeroDivisionError("in the loop")

    watching = WatchCallback(tmp_path / "run", [])
    broken = trainer(tmp_path, watching, Break())
    with pytest.raises(ZeroDivisionError, match="in the loop"):
        broken.train()
    watching.close()
    assert watching.scope is None
    state = RunFolder(tmp_path / "run").state(0)
    assert state["outcome"] == "interrupted"
    assert state["status"].endswith("at step 3")
    losses = open_run(tmp_path / "run")["observables/loss"].to_numpy()[0]
    assert np.isfinite(losses[1:]).tolist() == [True] * 3
    assert not any(module._forward_hooks for module in broken.model.modules())


def test_a_training_that_goes_on_counts_on(tmp_path: Path) -> None:
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watching = WatchCallback(tmp_path / "run", ["gradient_norm"], every=1)
    state = SimpleNamespace(is_world_process_zero=True, global_step=40)
    watching.on_train_begin(None, state, None, model=model, optimizer=optimizer)
    model(input_ids=IDS[:2], labels=IDS[:2]).loss.backward()
    optimizer.step()
    watching.on_step_end(None, state, None)
    watching.on_train_end(None, state, None)
    seen = open_run(tmp_path / "run")["observables"]
    assert seen["time"].to_numpy().tolist() == [40, 41]
    norms = seen["gradient_norm"].to_numpy()[0, :, 0, 0]
    assert np.isnan(norms).tolist() == [True, False]


def test_other_processes_record_nothing(tmp_path: Path) -> None:
    watching = WatchCallback(tmp_path / "run")
    state = SimpleNamespace(is_world_process_zero=False, global_step=0)
    watching.on_train_begin(None, state, None, model=small(), optimizer=None)
    watching.on_step_end(None, state, None)
    watching.on_train_end(None, state, None)
    assert not (tmp_path / "run").exists()


def test_an_option_that_watch_does_not_have_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="evry"):
        WatchCallback("run", evry=3)


def test_without_the_library_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "attnscope.watching.trainer")
    with pytest.raises(AttnscopeError, match="needs transformers, which is not installed"):
        importlib.import_module("attnscope.watching.trainer")
