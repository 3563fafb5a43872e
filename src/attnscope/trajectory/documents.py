"""JSON that a run keeps about itself, with a digest by which damage is seen.

The last entry of a document is the SHA-256 of all the others, as sorted JSON without spaces. So a
document is checked by itself, and changes in one step with what it says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.files import read_bytes, write_bytes

DIGEST = "digest"


class DamagedFile(AttnscopeError):
    """A file is not what was written.

    Args:
        path: the file.
        what: what is wrong with it.
        advice: what a person can do.
    """

    def __init__(self, path: Path, what: str, advice: str = "") -> None:
        self.path, self.what = path, what
        super().__init__(f"'{path}' {what}." + (f" {advice}" if advice else ""))


def write_json(path: Path, value: Any, *, sync: bool = False) -> None:
    """Write JSON atomically; an object gets a digest of what it holds."""
    if isinstance(value, Mapping):
        value = json.loads(json.dumps(value))  # Keys become text, as whoever reads them will see.
        value = {**{k: v for k, v in value.items() if k != DIGEST}, DIGEST: digest_of(value)}
    write_bytes(path, as_json(value), sync=sync)


def as_json(value: Any) -> bytes:
    """Return a value as readable JSON."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    # A name with half a character, such as a file's that is no text, is still written.
    return text.encode("utf-8", "surrogatepass")


def read_json(path: Path) -> Any:
    """Read JSON that anybody may have put there, as it is.

    Raises:
        DamagedFile: it is not JSON.
        AttnscopeError: it cannot be read.
        FileNotFoundError: there is none.
    """
    try:
        return json.loads(read_bytes(path).decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise DamagedFile(path, f"is not JSON ({reason})") from None


def read_sealed(path: Path, *, sealed: bool = True) -> dict[str, Any]:
    """Read an object that :func:`write_json` wrote, and check its digest.

    Args:
        path: the file.
        sealed: whether a digest has to be there; older versions wrote none.

    Raises:
        DamagedFile: it is no object, or its digest is missing or of something else.
        AttnscopeError: it cannot be read.
        FileNotFoundError: there is none.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise DamagedFile(path, "is damaged (it is no JSON object)")
    said = value.pop(DIGEST, None)
    if said is None and not sealed:
        return value
    if said != digest_of(value):
        what = "has no digest" if said is None else "does not fit its digest"
        raise DamagedFile(path, f"is damaged (it {what})")
    return value


def digest_of(value: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an object but for its digest, whatever the order of its entries."""
    rest = {str(name): each for name, each in value.items() if name != DIGEST}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
