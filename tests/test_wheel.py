"""The wheel on its own, outside the checkout: list, run, report, lab and watch."""

from __future__ import annotations

import ast
import os
import re
import runpy
import signal
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from urllib.request import urlopen

import pytest

import attnscope

ROOT = Path(__file__).parents[1]
SMALL = "--seeds 1 --epochs 50 --dictionary 40 --train 24 --test 8 --m 4 --points 5 --workers 1"
WATCH = """
import torch, attnscope
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids):
        x = self.words(ids)
        return self.attention(x, x, x)[0]

model, batch = Model(), torch.randint(9, (2, 5))
optimizer = torch.optim.Adam(model.parameters())
with attnscope.watch(model, "watched", optimizer=optimizer, probe=batch, every=1) as scope:
    for _ in range(3):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scope.step(loss)
print("WATCHED", attnscope.open_run("watched")["observables"].sizes["step"])
"""

pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with what is installed; nothing is fetched."""
    pytest.importorskip("hatchling", reason="the wheel is built by hatchling: pip install .[dev]")
    out = tmp_path_factory.mktemp("dist")
    code = (
        "import os, sys; from hatchling.build import build_wheel; os.chdir(sys.argv[1]); "
        "print(build_wheel(sys.argv[2]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, ROOT, out], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it, without its dependencies, where those of this environment are seen."""
    home = tmp_path_factory.mktemp("elsewhere") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=100)
    packages = home / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    seen = [each for each in sys.path if each.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(seen))
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin/python"), "install", "-qq"]
    done = subprocess.run(
        [*pip, "--no-deps", "--no-index", wheel], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return home / "bin"


def run(words: str, installed: Path, folder: Path) -> str:
    program, *rest = words.split()
    done = subprocess.run(
        [installed / program, *rest],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_the_wheel_says_of_itself(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        told = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(told).decode())
    assert metadata["Version"] == attnscope.__version__
    assert "attnscope/py.typed" in names
    assert "attnscope/cli/template.txt" in names
    assert "attnscope/templates/report/page.html.j2" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if not name.startswith("attnscope")]
    needed = metadata.get_all("Requires-Dist") or []
    assert any(re.match(r"torch>=\d+\.\d+$", each) for each in needed)
    assert any(each.startswith("contourpy") for each in needed)
    # A package index shows images by their address alone, and has no folder docs.
    shown = str(metadata.get_payload())
    assert "# attnscope" in shown
    assert "](docs/" not in shown


def test_the_readme_of_a_package_index() -> None:
    hook = pytest.importorskip("hatchling.metadata.plugin.interface")
    assert hook
    scope = runpy.run_path(str(ROOT / "hatch_build.py"))
    text = "![a picture](docs/x.png) [docs](docs/y.md) [up](#up) [arXiv](https://arxiv.org)"
    assert scope["for_an_index"](text, "") == " docs [up](#up) [arXiv](https://arxiv.org)"
    shown = scope["for_an_index"](text, "https://host/raw/")
    assert shown.startswith("![a picture](https://host/raw/docs/x.png) [docs](https://host/raw/doc")


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        said += extra
    declared = {re.split(r"[<>=\[ ]", each)[0].lower().replace("-", "_") for each in said}
    names = {"sklearn": "scikit_learn", "mpl_toolkits": "matplotlib"}
    optional = {
        "pandas",
        "wandb",
        "mlflow",
        "pyarrow",
        "packaging",
    }  # Of others, if they are there.
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    own = {"attnscope", *sys.stdlib_module_names}
    missing = {each for each in found - own if names.get(each, each).lower() not in declared}
    assert missing <= optional, missing


def test_the_wheel_works_elsewhere(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "where.py").write_text("import attnscope; print(attnscope.__file__)")
    assert str(installed.parent) in run("python where.py", installed, tmp_path)
    assert "lu2021.sen" in run("attnscope list", installed, tmp_path)
    out = run(f"attnscope run capacity {SMALL} --out run", installed, tmp_path)
    assert out.splitlines()[-1] == "report: run/report.html"
    assert "bokeh" in (tmp_path / "run/report.html").read_text()
    run("attnscope report run --figures svg --out again", installed, tmp_path)
    assert list((tmp_path / "again/figures").glob("*.svg"))
    run("attnscope new mine.py", installed, tmp_path)
    (tmp_path / "watching.py").write_text(WATCH)
    assert "WATCHED 4" in run("python watching.py", installed, tmp_path)


def test_the_lab_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    words = [installed / "attnscope", "lab", "--port", "0", "--no-open"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        try:
            address = lab.stdout.readline().split()[-1]
            with urlopen(address, timeout=60) as page:
                assert b"attnscope" in page.read()
        finally:
            lab.send_signal(signal.SIGINT)
        assert lab.wait(timeout=60) == 0
