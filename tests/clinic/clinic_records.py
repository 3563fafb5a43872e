"""Recordings of the clinic as one small file: what diagnoses read, to eight binary digits."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from attnscope.watched.chart import Chart
from attnscope.watched.course import Course

RECORDS = Path(__file__).parent / "records.xz"
KEPT = ("layers", "blocks", "optimizer", "architecture")
"""Facts about a model that diagnoses read."""


def write(charts: Mapping[str, Chart], path: Path = RECORDS) -> None:
    """Write charts by name: a line of JSON that says what there is, then all numbers.

    Numbers are the upper half of single precision, their first bytes before their second ones:
    neighbours are alike then, and pack well.
    """
    head = []
    numbers = []
    for name, chart in charts.items():
        held = {
            variable: [[int(step) for step in course.steps], list(course.values.shape[1:])]
            for variable, course in chart.courses.items()
        }
        facts = {key: chart.spec[key] for key in KEPT if key in chart.spec}
        head.append({"name": name, "spec": facts, "courses": held})
        numbers += [_half(course.values) for course in chart.courses.values()]
    whole = np.concatenate(numbers)
    body = (whole >> 8).astype(np.uint8).tobytes() + (whole & 0xFF).astype(np.uint8).tobytes()
    text = json.dumps(head, separators=(",", ":")).encode()
    path.write_bytes(lzma.compress(text + b"\n" + body, preset=9 | lzma.PRESET_EXTREME))


def read(path: Path = RECORDS) -> dict[str, Chart]:
    """Return what was written."""
    text, _, body = lzma.decompress(path.read_bytes()).partition(b"\n")
    planes = np.frombuffer(body, np.uint8).astype(np.uint32).reshape(2, -1)
    values = ((planes[0] << 24) | (planes[1] << 16)).view(np.float32).astype(float)
    charts, at = {}, 0
    for entry in json.loads(text):
        courses = {}
        for variable, (steps, shape) in entry["courses"].items():
            size = len(steps) * int(np.prod(shape))
            courses[variable] = Course(
                np.array(steps), values[at : at + size].reshape(len(steps), *shape)
            )
            at += size
        charts[entry["name"]] = Chart(courses, entry["spec"])
    return charts


def thinned(chart: Chart, apart: int) -> Chart:
    """Return readings so many steps apart; the loss and what is read less often stay."""
    courses = {}
    for name, course in chart.courses.items():
        often = name != "loss" and len(course.steps) > 1 and np.diff(course.steps).min() < apart
        kept = course.steps % apart == 0 if often else slice(None)
        courses[name] = Course(course.steps[kept], course.values[kept])
    return Chart(courses, chart.spec)


def _half(values: np.ndarray) -> np.ndarray:
    single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32).astype(np.uint64).ravel()
    rounded = (bits + 0x8000) >> 16
    kept = np.where(np.isfinite(single).ravel(), rounded, bits >> 16)
    # Rounding a number that is not one may make it infinite.
    return np.where(np.isnan(single).ravel(), 0x7FC0, kept).astype(np.uint16)
