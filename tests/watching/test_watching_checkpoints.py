"""Trajectories from saved weights: the same numbers as while training, and nothing executed."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file, save_model
from torch import nn

import attnscope.watching as watching
from attnscope.errors import AttnscopeError
from attnscope.trajectory import RunFolder, open_run
from attnscope.watching.checkpoints import find_checkpoints, from_checkpoints
from fake_device import NAMED, fake_device_by_name
from watched_toys import Reader

IDS = torch.randint(0, 11, (3, 6), generator=torch.Generator().manual_seed(2))
GIVEN: dict[str, Any] = {"probe": IDS, "attention": "attention:weights"}
RECORD = ["attention", "entropy", "weight_norm"]


def trained(folder: Path, steps: tuple[int, ...]) -> None:
    """Train a reader, watched, and save it after some of the steps."""
    folder.mkdir(parents=True)
    torch.manual_seed(3)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    run = folder.parent / "live"
    with watching.watch(model, run, RECORD, every=1, optimizer=optimizer, **GIVEN) as scope:
        for step in range(max(steps) + 1):
            if step:
                ids = torch.randint(0, 11, (4, 6))
                loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scope.step(loss)
            if step in steps:
                save_file(model.state_dict(), folder / f"{step}.safetensors")


def test_it_is_the_trajectory_of_the_training(tmp_path: Path) -> None:
    steps = (0, 2, 9, 10, 12)
    trained(tmp_path / "saved", steps)
    seen: list[tuple[int, int]] = []
    path = from_checkpoints(
        tmp_path / "saved",
        tmp_path / "run",
        RECORD,
        build=Reader,
        progress=lambda done, total: seen.append((done, total)),
        **GIVEN,
    )
    assert seen == [(n, 5) for n in range(1, 6)]
    live, after = open_run(tmp_path / "live")["observables"], open_run(path)["observables"]
    # 10 comes after 9: steps are numbers, not words.
    assert after["time"].to_numpy().tolist() == list(steps)
    for name in RECORD:
        assert np.array_equal(after[name].to_numpy(), live[name].to_numpy()[:, list(steps)]), name
    assert np.isnan(after["loss"].to_numpy()).all()
    assert open_run(path).attrs["status"] == "finished: the run is complete"


def test_on_a_device_it_is_the_trajectory_of_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path / "saved", (0, 2, 5))
    here = from_checkpoints(tmp_path / "saved", tmp_path / "here", build=Reader, **GIVEN)
    asked: list[str] = []

    def find(name: str) -> Any:
        asked.append(name)
        return NAMED

    with fake_device_by_name(monkeypatch) as sides, monkeypatch.context() as patch:
        patch.setattr("attnscope.watching.checkpoints.find", find)
        # All tensors say that they are on the CPU, so that nothing seems to be left to move.
        patch.setattr("attnscope.watching.probe._moved", lambda batch, _: batch.to(NAMED))
        there = from_checkpoints(
            tmp_path / "saved", tmp_path / "there", build=Reader, device="cuda", **GIVEN
        )
    assert asked == ["cuda"]
    assert sides.passed["copied"] >= 3 * len(list(Reader().parameters()))
    ours, theirs = (open_run(path)["observables"].to_dataset() for path in (here, there))
    assert set(ours.data_vars) == set(theirs.data_vars)
    for name in ours.data_vars:
        # Memory is laid out otherwise over there, so sums may come in another order.
        np.testing.assert_allclose(
            ours[name].to_numpy(), theirs[name].to_numpy(), 1e-5, 1e-6, err_msg=str(name)
        )


def test_a_device_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    trained(tmp_path / "saved", (0, 1))
    with pytest.raises(AttnscopeError, match="device = 'tpu': expected 'cpu'"):
        from_checkpoints(tmp_path / "saved", tmp_path / "run", build=Reader, device="tpu", **GIVEN)
    assert not (tmp_path / "run").exists()


def test_what_only_a_step_shows_is_left_out(tmp_path: Path) -> None:
    trained(tmp_path / "saved", (0, 3))
    path = from_checkpoints(tmp_path / "saved", tmp_path / "run", build=Reader, **GIVEN)
    names = set(open_run(path)["observables"].data_vars)
    assert {"entropy", "weight_norm", "stable_rank"} <= names
    assert not names & {"gradient_norm", "update_ratio", "query_key_gradient_ratio"}


def test_identical_weights_are_found_and_said(tmp_path: Path) -> None:
    trained(tmp_path / "saved", (0, 1, 2, 3))
    weights = load_file(tmp_path / "saved" / "1.safetensors")
    # Another file, the same weights: what lies around them does not count.
    save_file(weights, tmp_path / "saved" / "3.safetensors", metadata={"step": "3"})
    with pytest.warns(UserWarning, match=r"identical weights: 1, 3\. They are 2 of 4 checkpoints"):
        path = from_checkpoints(
            tmp_path / "saved", tmp_path / "run", ["weight_norm"], build=Reader, **GIVEN
        )
    spec = RunFolder(path).manifest()["spec"]
    assert spec["identical"] == [[1, 3]]


def test_a_checkpoint_that_does_not_fit_names_its_keys(tmp_path: Path) -> None:
    trained(tmp_path / "saved", (0, 5))
    file = tmp_path / "saved" / "5.safetensors"
    weights = load_file(file)
    weights["heads.weight"] = weights.pop("head.weight")
    weights["words.weight"] = torch.zeros(12, 8)
    save_file(weights, file)
    with pytest.raises(AttnscopeError) as caught:
        from_checkpoints(tmp_path / "saved", tmp_path / "run", [], build=Reader, **GIVEN)
    text = str(caught.value)
    assert "5.safetensors' does not fit the model" in text
    assert "missing keys: head.weight;" in text
    assert "of another shape: words.weight (12, 8) for (11, 8)" in text
    assert "keys that the model does not have: heads.weight" in text
    # What was read before is kept.
    assert open_run(tmp_path / "run")["observables/time"].to_numpy().tolist() == [0]


def test_weights_that_are_tied_may_be_saved_once(tmp_path: Path) -> None:
    class Tied(Reader):
        def __init__(self) -> None:
            super().__init__()
            self.head.weight = self.words.weight

    (tmp_path / "saved").mkdir()
    model = Tied()
    save_model(model, str(tmp_path / "saved" / "step_7.safetensors"))
    path = from_checkpoints(tmp_path / "saved", tmp_path / "run", [_word], build=Tied, **GIVEN)
    found = open_run(path)["observables/_word"].to_numpy()
    assert found.tolist() == [[model.words.weight[3, 2].item()]]


def _word(model: Any) -> Any:
    return model.head.weight[3, 2]


class Bomb:
    def __reduce__(self) -> Any:
        return exec, ("raise AssertionError('it was loaded')",)


@pytest.mark.parametrize("name", ["10.pt", "checkpoint-10/pytorch_model.bin", "step10.ckpt"])
def test_a_pickle_is_never_loaded(tmp_path: Path, name: str) -> None:
    trained(tmp_path / "saved", (0,))
    path = tmp_path / "saved" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(AttnscopeError, match=r"is a pickle.*safetensors.torch.save_model"):
        from_checkpoints(tmp_path / "saved", tmp_path / "run", build=Reader, **GIVEN)


def test_bad_folders(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"'.*nowhere' is no folder"):
        find_checkpoints(tmp_path / "nowhere")
    with pytest.raises(AttnscopeError, match="holds no checkpoints"):
        find_checkpoints(tmp_path)
    trained(tmp_path / "saved", (4,))
    with pytest.raises(AttnscopeError, match=r"no config\.json beside .*--model module:function"):
        from_checkpoints(tmp_path / "saved", tmp_path / "run")
    with pytest.raises(AttnscopeError, match="returned a list: expected a torch"):
        from_checkpoints(tmp_path / "saved", tmp_path / "run", build=list)  # type: ignore[arg-type]
    (tmp_path / "saved" / "model-4.safetensors").write_bytes(b"nothing")
    with pytest.raises(AttnscopeError, match="are both of step 4"):
        find_checkpoints(tmp_path / "saved")
    (tmp_path / "saved" / "4.safetensors").unlink()
    with pytest.raises(AttnscopeError, match=r"cannot be read .*: expected safetensors"):
        from_checkpoints(tmp_path / "saved", tmp_path / "run", build=Reader)


def test_hugging_face_folders(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.GPT2Config(
        n_layer=2, n_embd=8, n_head=2, vocab_size=11, n_positions=8, bos_token_id=None,
        eos_token_id=None,
    )  # fmt: skip
    models = {}
    for step in (5, 10, 100):
        torch.manual_seed(step)
        models[step] = transformers.GPT2LMHeadModel(config).eval()
        folder = tmp_path / "saved" / f"checkpoint-{step}"
        # The last one in several files.
        models[step].save_pretrained(folder, max_shard_size="2KB" if step == 100 else "1GB")
        (folder / "optimizer.pt").write_bytes(b"not to be read")
    assert len(find_checkpoints(tmp_path / "saved")[-1].files) > 1
    path = from_checkpoints(
        tmp_path / "saved", tmp_path / "run", ["attention"], probe={"input_ids": IDS}
    )
    tree = open_run(path)
    spec = json.loads(tree.attrs["spec"])
    assert spec["model"] == "GPT2LMHeadModel"
    found = tree["observables/attention"].to_numpy()[0]
    for index, model in enumerate(models.values()):
        model.set_attn_implementation("eager")
        with torch.no_grad():
            wanted = model(input_ids=IDS, output_attentions=True).attentions
        assert np.allclose(found[index], torch.stack(wanted).numpy(), atol=1e-6)


def test_a_configuration_with_code_of_its_own_is_not_run(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path / "saved" / "checkpoint-1"
    folder.mkdir(parents=True)
    save_file({"a": torch.zeros(1)}, folder / "model.safetensors")
    own = {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.M"}}
    (folder / "config.json").write_text(json.dumps(own))
    (folder / "mine.py").write_text("raise AssertionError('it was executed')")
    with pytest.raises(AttnscopeError, match="no configuration that transformers knows"):
        from_checkpoints(tmp_path / "saved", tmp_path / "run")
