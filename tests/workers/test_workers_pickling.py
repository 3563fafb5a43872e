"""What travels to a worker, and what a worker imports."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import worker_jobs as jobs

from attnscope.workers import Worker
from attnscope.workers.pickling import search_path

STUDY = """
from dataclasses import dataclass
import math

FACTOR = 2

@dataclass
class Study:
    width: float = math.pi

def double(study, job):
    return Study(FACTOR * study.width)
"""
SCRIPT = f"""{STUDY}
from attnscope.workers import Worker
worker = Worker()
worker.receive()
worker.send(double, Study(1.5))
print(worker.receive() == ("done", Study(3.0)))
worker.close()
"""


@pytest.fixture
def forget_modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def result(function: Any, *args: object) -> Any:
    with closing(Worker()) as worker:
        worker.receive()
        worker.send(function, *args)
        kind, value = worker.receive()
    assert kind == "done", value
    return value


@pytest.mark.parametrize("way", ["script", "no file"])
def test_a_script_needs_no_main_guard(tmp_path: Path, way: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py" if way == "script" else "-"],
        input=SCRIPT,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.usefixtures("forget_modules")
@pytest.mark.parametrize("name", ["made_up", "worker_jobs_elsewhere.study", "json5"])
def test_a_file_under_a_made_up_name_travels_by_value(tmp_path: Path, name: str) -> None:
    (tmp_path / "study.py").write_text(STUDY)
    # Another module of this name can be imported, and is not meant.
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "json5.py").write_text("")
    sys.path.append(str(tmp_path / "elsewhere"))
    try:
        spec = importlib.util.spec_from_file_location(name, tmp_path / "study.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert result(module.double, module.Study(1.5)) == module.Study(3.0)
    finally:
        sys.path.remove(str(tmp_path / "elsewhere"))


@pytest.mark.usefixtures("forget_modules")
@pytest.mark.parametrize("relative", [True, False], ids=["relative", "absolute"])
def test_a_worker_imports_nothing_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('a file of the user')")
    (tmp_path / "my_helper.py").write_text(STUDY)
    (tmp_path / "my_study.py").write_text(
        "import my_helper\ndouble = lambda *a: my_helper.double(*a)"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["" if relative else str(tmp_path), *sys.path])
    found = result(jobs.surroundings)
    assert Path(found["queue"]).parent == Path(os.__file__).parent
    assert not {"", ".", str(tmp_path)} & set(found["path"])
    # What lies there can be sent all the same.
    my_study = importlib.import_module("my_study")
    assert result(my_study.double, my_study.my_helper.Study(1.5)) == my_study.my_helper.Study(3.0)


@pytest.mark.usefixtures("forget_modules")
def test_what_a_worker_can_import_travels_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import sys\ndef is_there(job): return 'my_package.part' in sys.modules"
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "__init__.py").write_text("")
    (tmp_path / "my_package" / "part.py").write_text(text)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    monkeypatch.setattr(sys, "path", ["..", *sys.path])
    assert result(importlib.import_module("my_package.part").is_there)


def test_the_folder_of_a_script_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert str(tmp_path) not in search_path()
    main, script = sys.modules["__main__"], str(tmp_path / "script.py")
    monkeypatch.setattr(main, "__file__", script, raising=False)
    assert search_path()[0] == str(tmp_path)
