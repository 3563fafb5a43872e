"""The Python in the README and in the tour runs as it stands, on a smaller spec."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest
import torch
from torch import Tensor, nn

ROOT = Path(__file__).parent.parent
TOUR = ROOT / "docs" / "tour.md"


def snippets() -> list[str]:
    text = TOUR.read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text, flags=re.MULTILINE)
    code = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]
    return [block for block in code if "import" in block]


def readme() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_watching_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(9, 8)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, ids: Tensor) -> Tensor:
            x = self.words(ids)
            attended: Tensor = self.attention(x, x, x)[0]
            return attended

    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    loader = [torch.randint(9, (2, 5)) for _ in range(3)]

    def training_step(inputs: Tensor) -> Tensor:
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    names = {"model": model, "optimizer": optimizer, "batch": loader[0], "loader": loader}
    exec(readme()[0], {**names, "training_step": training_step})
    assert (tmp_path / "runs/mine/report.html").exists()


def test_a_study_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = "settings=dict(seeds=1, epochs=20, dictionary=60, train=40, test=8, m=4, points=3)"
    code, changed = re.subn(r'scale="quick"', f"{small}, workers=1", readme()[1])
    assert changed == 1
    exec(code, {})
    assert list(tmp_path.glob("runs/lu2021.capacity-*"))


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
    assert tree.attrs["status"].startswith("finished at time 500")  # type: ignore[attr-defined]


def test_before_you_train(capsys: pytest.CaptureFixture[str]) -> None:
    exec(snippets()[2], {})
    hard, easy = capsys.readouterr().out.splitlines()
    assert hard.startswith("not learnable: ")
    assert "exactly uniform" in hard
    assert easy.startswith("learnable: ")
