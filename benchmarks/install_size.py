"""How large an installation is beyond PyTorch: the core, and with its extras.

python benchmarks/install_size.py                  # fetches packages; a minute

Dependencies are read from pyproject.toml, torch is left out, and pip installs the rest into an
empty folder, with byte code, as it does by default.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def megabytes(path: Path) -> float:
    """Return what files take, in MB of 2**20 bytes, with blocks as du counts them."""
    files = [path, *path.rglob("*")]
    return sum(each.lstat().st_blocks * 512 for each in files) / 2**20


def wanted(project: dict, extra: str) -> list[str]:
    """Return the dependencies with one extra, or of the core."""
    extras = project["optional-dependencies"]
    found = list(project["dependencies"]) + (extras[extra] if extra else [])
    while own := [each for each in found if each.startswith("attnscope[")]:
        names = [name for each in own for name in re.findall(r"[\w-]+", each.split("[")[1])]
        found = [each for each in found if each not in own]
        found += [each for name in names for each in extras[name]]
    return [each for each in found if not each.startswith("torch")]


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = {"core": wanted(project, ""), "xarray and zarr alone": ["xarray", "zarr"]}
    rows |= {f"[{name}]": wanted(project, name) for name in ("studies", "all")}
    for name, packages in rows.items():
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "install", "-qqq", "--target", folder, *packages]
            subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
            parts = {each.name: megabytes(each) for each in Path(folder).iterdir()}
        heavy = sorted(parts, key=lambda each: -parts[each])[:6]
        told = ", ".join(f"{each} {parts[each]:.0f}" for each in heavy)
        print(f"{name:<24} {sum(parts.values()):>5.0f} MB   {told}")


if __name__ == "__main__":
    main()
