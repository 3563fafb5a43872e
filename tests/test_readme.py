"""The Python in the README runs as it stands, on a smaller spec."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest
import torch
from torch import Tensor, nn

README = Path(__file__).parent.parent / "README.md"


def snippets() -> list[str]:
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text, flags=re.MULTILINE)
    code = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]
    return [block for block in code if "import" in block]


def test_eight_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    code = snippets()[0]
    small = "Sen(seeds=1, epochs=100, dictionary=60, train=40, test=20, m=4, points=21)"
    code, changed = re.subn(r"Sen\([^)]*\)", small, code)
    assert changed == 1
    exec(code, {})
    assert "Attn-FC: the norm of every topic word" in capsys.readouterr().out
    assert len(list(tmp_path.glob("runs/*/report.html"))) == 1


def test_a_model_of_your_own() -> None:
    matplotlib.use("Agg")
    model = nn.Linear(2, 1)

    def loss(model: nn.Module) -> Tensor:
        return (model(torch.eye(2)) - 1).square().mean()

    names = {"model": model, "loss": loss}
    exec(snippets()[1], names)
    tree = names["tree"]
    assert tree["observables/largest"].sizes == {"run": 1, "step": 101}  # type: ignore[index]
    assert tree.attrs["status"] == "finished at time 500"  # type: ignore[attr-defined]


def test_before_you_train(capsys: pytest.CaptureFixture[str]) -> None:
    exec(snippets()[2], {})
    hard, easy = capsys.readouterr().out.splitlines()
    assert hard.startswith("not learnable: ")
    assert "exactly uniform" in hard
    assert easy.startswith("learnable: ")
