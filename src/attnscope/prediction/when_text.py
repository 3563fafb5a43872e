"""When attention will start on running text, in words, for the model of Li 2023."""

from __future__ import annotations

import math

import numpy as np

from attnscope.prediction.asked import AskedText
from attnscope.prediction.onset import NOISES, RATE, Growth, Said, growth
from attnscope.prediction.onset_windows import COPIES, LEAST, LENGTH, Windows, windows_of
from attnscope.report import Band, Cell, Figure, Line, Mark, Panel, Rule, Section, Table

TITLE = "When attention will start"
FEWEST = 40
"""Windows below which nothing is said."""
FEWEST_WORDS = 10
"""Words of the vocabulary below which nothing is said."""
USUAL = 1e-3
"""The noise of the start that the first sentence is about."""
SHOWN = 10.0
"""‖S‖₂ up to which the figure goes: beyond the onset nothing is linear."""
JUDGED = (
    "Judged on 30 trainings on five sets (`attnscope run predict.onset`): off by 4.9 % on average "
    "and 17 % at most, where windows have five words; all of them were inside the interval."
)
"""What the study came to; docs/predict.md has its table."""


def when_text_section(asked: AskedText) -> Section:
    """Say when attention will start by gradient descent, for several noises of the start."""
    texts = asked.data.splits.get("train") or next(iter(asked.data.splits.values()))
    windows = windows_of(texts, asked.seed, asked.tell)
    lacking = _lacking(windows, len(texts))
    if lacking:
        return Section("when-text", TITLE, (f"Cannot tell: {lacking}",))
    grown = growth(windows, seed=asked.seed, tell=asked.tell)
    asked.tell("reading off the onset", 0, 0)
    said = {noise: grown.onset(noise) for noise in NOISES}
    stepped = {noise: grown.onset(noise, RATE) for noise in NOISES}
    return Section(
        "when-text",
        TITLE,
        (_verdict(said[USUAL], stepped[USUAL]), *_about(windows)),
        tables=(_table(said, stepped),),
        figures=(_figure(grown, said[USUAL]),),
    )


def _lacking(windows: Windows, texts: int) -> str:
    """Say what is missing for a prediction, or nothing."""
    many, words = len(windows.rows), len(windows.words)
    if many >= FEWEST and words >= FEWEST_WORDS:
        return ""
    said = (
        f"{texts:,} texts have {windows.counted:,} content words (letters between spaces or marks, "
        f"three or more, no stop-words), and the {words} commonest of them fill {many} windows of "
        f"{LEAST} to {LENGTH} words; expected {FEWEST} windows"
    )
    if words < FEWEST_WORDS:
        return f"{said}, and {FEWEST_WORDS} different words."
    if many:
        return (
            f"{said}, for which about {math.ceil(texts * FEWEST / many):,} such texts are needed."
        )
    return f"{said}: longer texts, in which words come again. (Text without spaces has none.)"


def _verdict(said: Said, stepped: Said) -> str:
    who = "The one-layer masked-word model of Li 2023"
    if math.isnan(said.time):
        return (
            f"{who}: no onset before t = {said.until:,.0f} (t = learning rate × step), from W^K "
            f"and W^Q of standard deviation {USUAL:g}. Attention would stay near uniform."
        )
    return (
        f"{who}, by gradient descent from W^K and W^Q of standard deviation {USUAL:g}: attention "
        f"starts at t = {_near(said.time)} ({_near(said.low)} to {_near(said.high)}), t = learning "
        f"rate × step. That is step {_near(said.time)} at a rate of 1, and step "
        f"{_near(stepped.time / RATE)} at a rate of {RATE:g}."
    )


def _about(windows: Windows) -> tuple[str, ...]:
    some = f", drawn from {windows.found:,}" if windows.found > len(windows.rows) else ""
    return (
        "Before it attention is as good as uniform; the start is where ‖W^Kᵀ W^Q‖₂ reaches 1. It "
        "is read off a run of W^V alone, in which attention is frozen at uniform: near zero keys "
        "and queries obey a linear system that such a run drives (theory/li2023/onset.py). In "
        "brackets what other starts and masks come to.",
        f"Trained on: {len(windows.rows):,} windows{some}, of up to {LENGTH} words each, of the "
        f"{len(windows.words)} commonest content words ({', '.join(windows.words[:5])}, ...), "
        f"which are {windows.share:.0%} of all content words; 15 % of the positions masked, "
        f"{COPIES} masks a window.",
        "It says nothing of Adam, which rescales the tiny gradients of keys and queries; of more "
        "layers or heads, of positions, and of words outside of the vocabulary. (With 100 words in "
        f"place of 60 it takes half as long again on WikiText-2.) {JUDGED}",
    )


def _table(said: dict[float, Said], stepped: dict[float, Said]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for noise, one in said.items():
        if one.awake:
            rows.append((f"{noise:g}", "awake from the start", "", "", ""))
        elif math.isnan(one.time):
            rows.append((f"{noise:g}", f"none before {one.until:,.0f}", "", "", ""))
        else:
            between = f"{_near(one.low)} to {_near(one.high)}"
            cells = (_near(one.time), between, _near(one.time))
            rows.append((f"{noise:g}", *cells, _near(stepped[noise].time / RATE)))
    columns = (
        "standard deviation of W^K and W^Q at the start",
        "attention starts at (learning rate × step)",
        "interval over starts and masks",
        "steps at rate 1",
        f"steps at rate {RATE:g}",
    )
    title = "When attention starts, by the noise of the start (0.02: GPT-2)"
    return Table("when-text", title, columns, tuple(rows))


def _figure(grown: Growth, said: Said) -> Figure:
    mean = grown.expected(USUAL)[0]
    starts = grown.starts(USUAL)
    end = min(len(mean), *(len(each) for each in starts))
    every = np.stack([each[:end] for each in starts])
    low, high = every.min(axis=0), every.max(axis=0)
    shown = np.flatnonzero((high > 0) & (low <= SHOWN) & (mean[:end] <= SHOWN))
    times = grown.times[shown]
    risen = shown[mean[shown] > 0]
    marks: list[Mark] = [
        Band(times, low[shown], high[shown], "single starts and masks"),
        Line(grown.times[risen], mean[risen], "average over starts", theory=True),
        Rule(1.0, "attention starts"),
    ]
    if not math.isnan(said.time):
        marks.append(Rule(said.time, "said", vertical=True))
    panel = Panel(
        f"from a noise of {USUAL:g}",
        "time (learning rate × step)",
        "‖W^Kᵀ W^Q‖₂",
        tuple(marks),
        yscale="log",
    )
    return Figure(
        "when-text",
        "How attention grows before it starts",
        "‖W^Kᵀ W^Q‖₂ of the linear system near uniform attention, dashed the average over starts "
        "for one draw of masks, the band all single starts of all draws. At 1 attention starts, "
        "and the linear system ends.",
        (panel,),
        columns=1,
    )


def _near(number: float) -> str:
    """Return a time to three digits.

    >>> _near(1855.4), _near(51.27), _near(math.inf)
    ('1,860', '51', 'any')
    """
    if not math.isfinite(number):
        return "any"
    digits = max(0, math.floor(math.log10(max(number, 1.0))) - 2)
    return f"{round(number, -digits):,.0f}"
