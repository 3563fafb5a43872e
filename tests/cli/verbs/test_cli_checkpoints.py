"""``attnscope checkpoints`` and ``attnscope export``."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from attnscope.cli import main
from attnscope.cli.verbs.checkpoints import function_at, once_watch, read_probe
from attnscope.errors import AttnscopeError
from attnscope.trajectory import open_run

Capture = pytest.CaptureFixture[str]
MODEL = """
from torch import nn

class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, ids):
        x = self.words(ids)
        return self.attention(x, x, x)[0]

def build():
    return Small()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a model in a file of its own, checkpoints of it, and a probe batch."""
    name = f"small_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{name}.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    build = function_at(f"{name}:build")
    (tmp_path / "saved").mkdir()
    for step in (0, 8, 16):
        torch.manual_seed(step)
        save_file(build().state_dict(), tmp_path / "saved" / f"{step}.safetensors")
    (tmp_path / "probe.json").write_text(json.dumps({"ids": [[1, 2, 3], [4, 5, 6]]}))
    (tmp_path / "name").write_text(f"{name}:build")
    return tmp_path


def words(folder: Path, *more: str) -> list[str]:
    name = (folder / "name").read_text()
    return ["checkpoints", "saved", "--out", "run", "--model", name, *more]


def test_checkpoints_become_a_run(folder: Path, capsys: Capture) -> None:
    code = main(words(folder, "--probe", "probe.json", "--record", "entropy", "--no-report"))
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    assert captured.out.splitlines()[-1] == "run: run"
    assert "1 layer of 2 heads" in captured.out
    seen = open_run("run")["observables"]
    assert seen["time"].to_numpy().tolist() == [0, 8, 16]
    assert seen["entropy"].shape == (1, 3, 1, 2)
    assert main(["export", "run", "--to", "csv", "--out", "curves.csv"]) == 0
    assert capsys.readouterr().out == "written: curves.csv\n"
    with Path("curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows if row["tag"] == "entropy/layer0/head1"] == ["0", "8", "16"]
    assert main(["show", "run"]) == 0
    assert "observables/entropy" in capsys.readouterr().out


def test_with_a_report(folder: Path, capsys: Capture) -> None:
    assert main(words(folder, "--probe", "probe.json", "--record", "entropy", "attention")) == 0
    report = Path(capsys.readouterr().out.splitlines()[-1].removeprefix("report: "))
    assert "Small" in report.read_text()


def test_identical_weights_are_a_warning(folder: Path, capsys: Capture) -> None:
    same = folder / "saved" / "8.safetensors"
    (folder / "saved" / "9.safetensors").write_bytes(same.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(words(folder, "--record", "weight_norm", "--no-report")) == 0
    assert "warning: some steps have identical weights: 8, 9." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("--model", "small"), "--model small: expected module:function"),
        (("--model", "no_such_module:build"), "'no_such_module' cannot be imported"),
        (("--record", "entrpy"), "Did you mean 'entropy'?"),
        (("--probe", "nothing.json"), "--probe nothing.json: there is no such file"),
        (("checkpoints", "nothing"), "'nothing' is no folder"),
        (("--attention", "attn"), "attn"),
        (("--device", "tpu"), "device = 'tpu': expected 'cpu'"),
    ],
)
def test_bad_input_is_a_sentence(
    folder: Path, capsys: Capture, change: tuple[str, str], sentence: str
) -> None:
    given = words(folder)
    if change[0] in given:
        given[given.index(change[0]) + 1] = change[1]
    else:
        given += change
    assert main(given) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert "Traceback" not in err
    assert not Path("run").exists()


def test_the_older_name(folder: Path, capsys: Capture) -> None:
    _, _, *rest = words(folder, "--record", "weight_norm", "--no-report")
    assert main(["watch", "--checkpoints=saved", *rest, "--quiet"]) == 0
    assert "watch --checkpoints DIR is now called checkpoints DIR" in capsys.readouterr().err
    assert once_watch(["--out", "x", "--checkpoints", "saved"]) == ["--out", "x", "saved"]
    assert open_run("run")["observables"]["time"].to_numpy().tolist() == [0, 8, 16]
    assert main(["watch"]) == 2
    assert "a model is watched from Python" in capsys.readouterr().err


def test_functions_that_are_not_there(folder: Path) -> None:
    name = (folder / "name").read_text().removesuffix(":build")
    with pytest.raises(AttnscopeError, match=r"has no function 'biuld'\. Did you mean 'build'\?"):
        function_at(f"{name}:biuld")
    assert isinstance(function_at(f"{name}:build")(), nn.Module)


def test_probe_batches(tmp_path: Path) -> None:
    save_file({"ids": torch.tensor([[1, 2]])}, tmp_path / "a.safetensors")
    assert read_probe(tmp_path / "a.safetensors")["ids"].tolist() == [[1, 2]]
    (tmp_path / "b.json").write_text("[[1, 2], [3, 4]]")
    assert read_probe(tmp_path / "b.json").tolist() == [[1, 2], [3, 4]]
    for name, content in (("c.json", "[[1], [2, 3]]"), ("d.json", "{"), ("e.safetensors", "x")):
        (tmp_path / name).write_text(content)
        with pytest.raises(AttnscopeError, match=f"{name}: it cannot be read"):
            read_probe(tmp_path / name)


def test_export_to_something_unknown(folder: Path, capsys: Capture) -> None:
    assert main(["export", "nowhere", "--to", "csv"]) == 2
    assert "is not a run" in capsys.readouterr().err
