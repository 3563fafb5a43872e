"""Published checkpoints of a model family, from a local cache that is built here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attnscope.cli import main
from attnscope.errors import AttnscopeError
from attnscope.trajectory import open_run
from attnscope.watching.checkpoints import from_checkpoints
from attnscope.watching.checkpoints.revisions import cached_repository, find_revisions, step_of

transformers = pytest.importorskip("transformers")
IDS = torch.randint(0, 23, (2, 6), generator=torch.Generator().manual_seed(0))
RECORD = ["attention", "entropy", "weight_norm"]


def model(seed: int) -> Any:
    torch.manual_seed(seed)
    config = transformers.GPTNeoXConfig(
        vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return transformers.GPTNeoXForCausalLM(config).eval()


def publish(repository: Path, revision: str, seed: int, shards: bool = False) -> Path:
    """Put a model into a cache as the hub's client does: blobs, links, a ref."""
    commit = hashlib.sha1(f"{revision} {seed}".encode()).hexdigest()
    snapshot = repository / "snapshots" / commit
    made = repository / "made" / commit
    model(seed).save_pretrained(made, max_shard_size="8KB" if shards else "1GB")
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir(exist_ok=True)
    for file in made.iterdir():
        blob = repository / "blobs" / hashlib.sha256(file.read_bytes()).hexdigest()
        file.rename(blob)
        (snapshot / file.name).symlink_to(Path("../../blobs") / blob.name)
    ref = repository / "refs" / revision
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit)
    return snapshot


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A family with three steps, one of them in parts, and a main branch."""
    folder = tmp_path / "hub" / "models--tiny--pythia"
    publish(folder, "step0", 0)
    publish(folder, "step512", 1, shards=True)
    publish(folder, "step143000", 2)
    publish(folder, "main", 2)
    return folder


def test_revisions_become_a_trajectory(repository: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"no step in their names are left out: main\."):
        path = from_checkpoints(repository, tmp_path / "run", RECORD, probe=IDS)
    seen = open_run(path)["observables"]
    assert seen["time"].to_numpy().tolist() == [0, 512, 143000]
    for place, seed in enumerate((0, 1, 2)):
        weights = model(seed)
        weights.set_attn_implementation("eager")
        with torch.no_grad():
            own = weights(IDS, output_attentions=True).attentions[1]
            norm = float(weights.gpt_neox.layers[1].attention.dense.weight.norm())
        np.testing.assert_allclose(seen["attention"][0, place, 1], own, atol=1e-6)
        np.testing.assert_allclose(seen["weight_norm"][0, place, 1, 3], norm, rtol=1e-5)


def test_it_is_the_trajectory_of_the_same_weights_in_folders(
    repository: Path, tmp_path: Path
) -> None:
    for step, seed in ((0, 0), (512, 1), (143000, 2)):
        model(seed).save_pretrained(tmp_path / "folders" / f"checkpoint-{step}")
    folders = from_checkpoints(tmp_path / "folders", tmp_path / "a", RECORD, probe=IDS)
    (repository / "refs" / "main").unlink()
    cached = from_checkpoints(repository, tmp_path / "b", RECORD, probe=IDS)
    for name in RECORD:
        one, two = (open_run(path)[f"observables/{name}"] for path in (folders, cached))
        np.testing.assert_array_equal(one.to_numpy(), two.to_numpy())


def test_a_repository_is_found_by_its_name(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(repository.parent))
    assert cached_repository("tiny/pythia") == repository
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert cached_repository("tiny/pythia") == repository
    with pytest.raises(AttnscopeError, match=r"'tiny/other' is no folder, and .* has no 'models--"):
        cached_repository("tiny/other")
    assert cached_repository("nothing") is None
    assert cached_repository(tmp_path) is None


def test_the_command_takes_a_repository(
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (repository / "refs" / "main").unlink()
    monkeypatch.setenv("HF_HUB_CACHE", str(repository.parent))
    probe = tmp_path / "probe.json"
    probe.write_text(json.dumps({"input_ids": IDS.tolist()}))
    given = ["--out", str(tmp_path / "run"), "--probe", str(probe), "--record", "relative_entropy"]
    assert main(["checkpoints", "tiny/pythia", *given]) == 0
    report = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("report: "))
    # Steps that are far apart are drawn on a logarithmic axis from the start.
    assert 'data-overview="log"' in report.read_text()
    assert open_run(tmp_path / "run")["observables/relative_entropy"].sizes["step"] == 3


def test_missing_parts_are_named(repository: Path) -> None:
    commit = (repository / "refs" / "step512").read_text()
    snapshot = repository / "snapshots" / commit
    (part, *_) = sorted(snapshot.glob("model-*.safetensors"))
    part.resolve().unlink()  # the link is there, what it points to is not
    said = rf"revision step512 of tiny/pythia: .* names '{part.name}', which is not there"
    with pytest.raises(AttnscopeError, match=said):
        find_revisions(repository)
    (snapshot / "model.safetensors.index.json").unlink()
    with pytest.raises(AttnscopeError, match=r"is a part of a model, and .*index\.json"):
        find_revisions(repository)


def test_revisions_of_one_step(repository: Path) -> None:
    (repository / "refs" / "main").unlink()
    same = (repository / "refs" / "step512").read_text()
    (repository / "refs" / "checkpoint-512").write_text(same)
    assert [saved.step for saved in find_revisions(repository)] == [0, 512, 143000]
    publish(repository, "stage2-step512-tokens3B", 7)
    said = r"'revision checkpoint-512 .*' and 'revision stage2-step512.*' are both of step 512"
    with pytest.raises(AttnscopeError, match=said):
        find_revisions(repository)


def test_without_any_step_there_is_nothing_to_read(repository: Path) -> None:
    for name in ("step0", "step512", "step143000"):
        (repository / "refs" / name).unlink()
    with pytest.raises(AttnscopeError, match=r"1 without a step in their names \(main\)"):
        find_revisions(repository)
    (repository / "refs" / "main").unlink()
    with pytest.raises(AttnscopeError, match="has no revision that is a checkpoint: none at all"):
        find_revisions(repository)


def test_weights_that_were_not_downloaded_are_left_out(repository: Path) -> None:
    (repository / "refs" / "main").unlink()
    (repository / "refs" / "step7").write_text("0" * 40)
    with pytest.warns(UserWarning, match=r"no weights in the cache as safetensors .*: step7\."):
        assert [saved.step for saved in find_revisions(repository)] == [0, 512, 143000]
    (repository / "refs" / "step8").write_text("../../elsewhere")
    with pytest.raises(AttnscopeError, match=r"says '\.\./\.\./elsewhere': expected the name of a"):
        find_revisions(repository)


def test_pickles_of_a_cache_are_never_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "models--tiny--old"
    snapshot = folder / "snapshots" / ("1" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    (folder / "refs").mkdir()
    (folder / "refs" / "step1").write_text("1" * 40)
    with pytest.raises(AttnscopeError, match=r"pytorch_model\.bin' is a pickle"):
        find_revisions(folder)


def test_weights_that_do_not_fit_are_refused_by_revision(repository: Path, tmp_path: Path) -> None:
    (repository / "refs" / "main").unlink()
    commit = (repository / "refs" / "step143000").read_text()
    file = repository / "snapshots" / commit / "model.safetensors"
    weights = load_file(file)
    weights.popitem()
    file.unlink()
    save_file(weights, file)
    with pytest.raises(AttnscopeError, match="'revision step143000 of tiny/pythia' does not fit"):
        from_checkpoints(repository, tmp_path / "run", RECORD, probe=IDS)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step1000", 1000),
        ("stage1-step1000-tokens5B", 1000),
        ("checkpoint-500", 500),
        ("global_step42", 42),
        ("iter_0000100", 100),
        ("250", 250),
        ("main", None),
        ("v1.0", None),
        ("pr/7", None),
        ("footstep9", None),
        ("step" + "9" * 40, None),
    ],
)
def test_steps_of_names(name: str, step: int | None) -> None:
    assert step_of(name) == step
