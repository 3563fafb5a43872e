"""A manifest says what a run is, and keeps saying it when its status changes."""

from __future__ import annotations

from pathlib import Path

import attnscope
from attnscope.trajectory import FORMAT, RunFolder
from attnscope.trajectory.manifest import update_manifest, write_manifest


def test_everything_about_a_run_is_in_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    write_manifest(
        folder,
        experiment="lu2021.sen",
        spec={"seeds": 2},
        runs=[("FC", 0), ("FC", 1)],
        grid=None,
        lr=0.1,
        command="attnscope run lu2021.sen",
        arrays=["observables/loss", "data/word"],
    )
    manifest = folder.manifest()
    assert set(manifest.pop("versions")) == {"python", "torch", "numpy", "scipy", "xarray", "zarr"}
    assert manifest.pop("created").endswith("+00:00")
    assert manifest == {
        "format": FORMAT,
        "attnscope": attnscope.__version__,
        "study": "lu2021.sen",
        "spec": {"seeds": 2},
        "runs": [{"case": "FC", "seed": 0}, {"case": "FC", "seed": 1}],
        "grid": None,
        "lr": 0.1,
        "command": "attnscope run lu2021.sen",
        "status": "not begun",
        "arrays": ["data/word", "observables/loss"],
        "sums": {},
    }


def test_what_changes_leaves_the_rest_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_manifest(folder, experiment="watched", spec={}, runs=[("watched", 0)], grid=1.0, lr=1.0)
    before = folder.manifest()
    update_manifest(folder, status="finished", spec={"every": 4})
    assert folder.manifest() == {**before, "status": "finished", "spec": {"every": 4}}
