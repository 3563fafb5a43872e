"""Measure attnscope against the obvious references and print one table; see README.md beside this.

    python benchmarks/run.py                         every row
    python benchmarks/run.py --only sst lu2021       those of these programs
    python benchmarks/run.py --only lu2021.flow_tc   this one
    python benchmarks/run.py --out table.json        written besides; with --merge rows that were
                                                     not measured now stay as they were there

Everything runs on one thread and in one process after another. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from attnscope import __version__
from attnscope.errors import AttnscopeError
from harness import Row, Skip, seconds

PROGRAMS = (
    "lu2021",
    "flow_gradients",
    "flow_accuracy",
    "sst",
    "li2023",
    "watching",
    "song2024_kernels",
    "song2024_landscape",
    "song2024_step",
    "snell2021_step",
    "snell2021_translation",
    "snell2021_probes",
    "ibm1",
    "lda",
    "pretrained",
    "lab",
)
PUBLISHED = Path(__file__).with_name("published.json")
QUARTER = 0.25


def rows(only: list[str]) -> list[Row]:
    """Return the rows of the programs or of the names that were asked for."""
    wanted = {name.split(".")[0] for name in only} or set(PROGRAMS)
    unknown = wanted - set(PROGRAMS)
    if unknown:
        sys.exit(f"--only {', '.join(sorted(unknown))}: expected some of {', '.join(PROGRAMS)}.")
    found = [
        row
        for program in PROGRAMS
        if program in wanted
        for row in importlib.import_module(program).ROWS
        if not only or program in only or row.name in only
    ]
    missing = {name for name in only if "." in name} - {row.name for row in found}
    if missing:
        sys.exit(f"--only {', '.join(sorted(missing))}: no such row; --list shows them.")
    return found


def machine() -> dict[str, Any]:
    """Measure the two limits that a machine sets, on one thread."""
    a, b = torch.randn(2, 768, 768)
    large, other = torch.zeros(2, 2**24)
    product = min(seconds(lambda: torch.mm(a, b)) for _ in range(20))
    copied = min(seconds(lambda: other.copy_(large)) for _ in range(5))
    return {
        "matrix_product_gflops": round(2 * 768**3 / product / 1e9, 1),
        "memory_gb_per_second": round(2 * large.nbytes / copied / 1e9, 1),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "attnscope": __version__,
    }


def processor() -> float:
    """Return seconds of the processor that this process and those it started have had."""
    return sum(os.times()[:4])


def measured(row: Row) -> dict[str, Any]:
    """Measure a row; return it as JSON values, with the day and how busy the machine was."""
    began = processor()
    about = {
        "name": row.name,
        "what": row.what,
        "reference": row.reference,
        "limit": row.limit,
        "unit": row.unit,
        "day": time.strftime("%Y-%m-%d"),
        "load": round(os.getloadavg()[0], 1),
    }
    try:
        found = row.measure()
    except (Skip, ImportError, AttnscopeError) as error:
        return {**about, "ratio": None, "how": f"skipped: {error}"}
    except Exception as error:
        # A row that breaks is said in the table and does not cost the others theirs.
        return {**about, "ratio": None, "how": f"failed: {type(error).__name__}: {error}"}
    return {
        **about,
        "ratio": float(f"{found.ratio:.4g}"),
        "reference_value": float(f"{found.reference:.4g}"),
        "our_value": float(f"{found.ours:.4g}"),
        "how": found.how,
        "took": round(processor() - began, 1),
    }


def moved(new: float | None, old: float | None) -> bool:
    """Say whether a ratio is more than a quarter off the published one."""
    return bool(new and old) and abs(new / old - 1) > QUARTER


def number(value: float, unit: str) -> str:
    if unit == "s":
        if value >= 1000:
            return f"{value:,.0f} s"
        for scale, word in ((1, "s"), (1e3, "ms")):
            if value * scale >= 1:
                return f"{value * scale:.3g} {word}"
        return f"{value * 1e6:.3g} µs"
    return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}x" if value >= 100 else f"{value:.3g}x"


def line(row: dict[str, Any], old: dict[str, float | None]) -> list[str]:
    """Return the cells of a row."""
    values = ""
    if row["ratio"] is not None:
        both = (number(row[key], row["unit"]) for key in ("reference_value", "our_value"))
        values = " / ".join(both)
    before = old.get(row["name"])
    mark = " moved" if moved(row["ratio"], before) else ""
    what = row["what"] if row["ratio"] is not None else f"{row['what']} ({row['how']})"
    measured = ratio(row["ratio"]) + mark
    return [what, row["reference"], values, measured, ratio(before), row["limit"]]


def write(out: Path, about: dict[str, Any], done: list[dict[str, Any]], merge: bool) -> None:
    """Write the table as JSON, after every row: what was measured is there if the next one hangs.

    Args:
        out: the file.
        about: the machine.
        done: rows that were measured now.
        merge: whether rows of the file that were not, or could not be, stay; all rows are then
            put in the order of the programs.
    """
    if merge and out.exists():
        kept = {row["name"]: row for row in json.loads(out.read_text())["rows"]}
        kept |= {row["name"]: row for row in done if row["ratio"] is not None}
        place = {name: at for at, name in enumerate(PROGRAMS)}
        done = sorted(kept.values(), key=lambda row: place[row["name"].split(".")[0]])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": about, "rows": done}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="programs or rows")
    parser.add_argument("--out", type=Path, help="write the table there as JSON")
    parser.add_argument("--merge", action="store_true", help="keep rows of --out not measured now")
    parser.add_argument("--list", action="store_true", help="say what rows there are")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    chosen = rows(given.only)
    if given.list:
        print("\n".join(f"{row.name:32} {row.what}" for row in chosen))
        return
    console = Console(width=None if sys.stdout.isatty() else 160)
    published = json.loads(PUBLISHED.read_text()) if PUBLISHED.exists() else {"rows": []}
    old = {row["name"]: row["ratio"] for row in published["rows"]}
    began, busy, about, done = time.perf_counter(), processor(), machine(), []
    for place, row in enumerate(chosen):
        print(f"{place + 1} of {len(chosen)}: {row.what}", file=sys.stderr, flush=True)
        done.append(measured(row))
        if given.out is not None:
            write(given.out, about, done, given.merge)
    table = Table(
        *("what", "reference", "reference / ours", "ratio", "published", "limit"),
        title=f"One thread; {about['matrix_product_gflops']} GFLOP/s in matrix products, "
        f"{about['memory_gb_per_second']} GB/s of memory, load {about['load']}",
        show_lines=bool(given.only),
    )
    for row in done:
        table.add_row(*line(row, old))
    console.print(table)
    if given.only:
        for row in done:
            console.print(f"{row['name']}: {row['how']}", highlight=False)
    far = [row for row in done if moved(row["ratio"], old.get(row["name"]))]
    for row in far:
        console.print(
            f"moved by more than a quarter: {row['what']}, {ratio(row['ratio'])}, "
            f"published {ratio(old[row['name']])}"
        )
    broken = [row for row in done if row["how"].startswith("failed")]
    if not far:
        console.print("No row moved by more than a quarter since the published table.")
    console.print(
        f"{(time.perf_counter() - began) / 60:.1f} minutes by the clock, "
        f"{(processor() - busy) / 60:.1f} of the processor."
    )
    if broken:
        sys.exit(f"{len(broken)} rows failed: {', '.join(row['name'] for row in broken)}.")


if __name__ == "__main__":
    main()
