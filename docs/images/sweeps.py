"""Draw the pictures of docs/sweeps.md from its three sweeps, and print the numbers of its text.

``python docs/images/sweeps.py FOLDER``, where FOLDER holds the sweeps sen, onset and song.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import xarray as xr

import attnscope
from attnscope.report import Dots, Figure, Line, Panel
from attnscope.report.static import save
from attnscope.sweeps.report import figures_of, study_of

HERE = Path(__file__).parent
TOPIC_WORDS = 8
"""W = topics × words_per_topic of lu2021.topic_words."""


def corollary(tree: xr.DataTree) -> Figure:
    """Fit the deviation from Corollary 1 on half of the points, judge it on the others."""
    found = tree["findings"].to_dataset().sel(claim="corollary1-FC")
    order = ("m", "dictionary", "train")
    deviation = found.ours.transpose(*order).to_numpy()
    m, words, sentences = np.meshgrid(*(tree[name].values for name in order), indexing="ij")
    used = (m <= 20) & (sentences >= 100)
    terms = np.stack([TOPIC_WORDS / words[used], TOPIC_WORDS / sentences[used]], axis=1)
    measured = deviation[used]
    shuffled = np.random.default_rng(0).permutation(measured.size)
    fitted_on, judged_on = shuffled[::2], shuffled[1::2]
    # Relative errors count, for deviations span two decades.
    relative = terms / measured[:, None]
    a, b = np.linalg.lstsq(relative[fitted_on], np.ones(fitted_on.size), rcond=None)[0]
    predicted = terms @ np.array([a, b])
    errors = abs(predicted / measured - 1)[judged_on]
    logs, own = np.log(measured[judged_on]), np.log(predicted[judged_on])
    explained = 1 - ((logs - own) ** 2).sum() / ((logs - logs.mean()) ** 2).sum()
    print(f"deviation = W ({a:.2f}/M + {b:.2f}/N), {measured.size} points with m <= 20, N >= 100: "
          f"on the half not fitted, median error {np.median(errors):.0%}, 90 % below "
          f"{np.quantile(errors, 0.9):.0%}, {explained:.1%} of the variance of the logarithm")
    over = found.verdict.to_numpy()
    print(f"holds at {(over == 'holds').sum()} of {over.size} points; the control passes at "
          f"{int((found.control_fails == 0).sum())}, all with m = 80")
    at = 10
    fine = np.geomspace(50, 3200, 60)
    marks: list[Line | Dots] = []
    for color, size in enumerate(tree["dictionary"].values.tolist()):
        curve = found.ours.sel(m=at, dictionary=size)
        label = f"M = {size:,} words"
        marks.append(Dots(tree["train"].values.astype(float), curve.to_numpy(), label=label, color=color))
        marks.append(Line(fine, TOPIC_WORDS * (a / size + b / fine), "", color))
    marks.append(Line(fine, np.full(60, 0.02), "criterion 0.02", theory=True))
    straight = np.geomspace(measured.min(), measured.max(), 2)
    each = [
        Dots(predicted[(m[used] == size)], measured[(m[used] == size)], label=f"m = {size}", color=i)
        for i, size in enumerate((2, 5, 10, 20))
    ]
    return Figure(
        "sweep-sen", "", "",
        (
            Panel(f"largest deviation from Corollary 1, m = {at}", "N, training sentences",
                  "relative deviation", tuple(marks), "log", "log"),
            Panel("m from 2 to 20 falls on one line", f"W({a:.2f}/M + {b:.2f}/N)", "relative deviation",
                  (*each, Line(straight, straight, "equal", theory=True)), "log", "log"),
        ),
        columns=2,
    )  # fmt: skip


def onset(tree: xr.DataTree) -> Figure:
    """Compare predicted and measured onsets of all points."""
    final = tree["final"].to_dataset().sel(case="learned").isel(seed=0)
    came, ahead = final["onset_came"], final["onset_ahead"]
    known = (came.notnull() & ahead.notnull()).to_numpy()
    errors = abs(ahead / came - 1).to_numpy()[known]
    print(f"onset: {known.sum()} of {known.size} points have one; median error "
          f"{np.median(errors):.2%}, 95 % below {np.quantile(errors, 0.95):.2%}, largest "
          f"{errors.max():.2%}; onsets from {float(came.min()):.0f} to {float(came.max()):.0f}; "
          f"{int((errors < 0.03).sum())} below 3 %")
    verdicts = tree["findings"].to_dataset().verdict
    for claim in ("onset", "expected", "closed"):
        print(f"  {claim} holds at {int((verdicts.sel(claim=claim) == 'holds').sum())} points")
    topics = tree["topics"].values.tolist()
    each = [
        Dots(ahead.sel(topics=n).to_numpy().ravel(), came.sel(topics=n).to_numpy().ravel(),
             label=f"{n} topics", color=i)
        for i, n in enumerate(topics)
    ]  # fmt: skip
    straight = np.array([float(came.min()), float(came.max())])
    marks: list[Line | Dots] = []
    for i, n in enumerate(topics):
        for rate, thin in ((2.0, False), (40.0, True)):
            own = came.sel(topics=n, rate=rate)
            dots = Dots(own["noise"].to_numpy(), own.to_numpy(), label=f"{n} topics", color=i)
            curve = ahead.sel(topics=n, rate=rate).to_numpy()
            marks += [dots, Line(own["noise"].to_numpy(), curve, "", i, thin=thin)]
    return Figure(
        "sweep-onset", "", "",
        (
            Panel(f"{known.sum()} settings", "predicted onset (time)", "measured onset (time)",
                  (*each, Line(straight, straight, "equal", theory=True)), "log", "log"),
            Panel("lines: predicted; learning rate 2, thin: 40", "noise of W^K and W^Q at the start",
                  "onset (time)", tuple(marks), "log"),
        ),
        columns=2,
    )  # fmt: skip


def certificate(tree: xr.DataTree) -> Figure:
    """Draw where training fits every label, with the line HD = Nn."""
    found = tree["findings"].to_dataset().sel(claim="fits")
    columns, labels = 2 * tree["width"], 4 * tree["sequences"]
    inside = (columns >= labels).broadcast_like(found.verdict)
    for kernel in ("softmax", "gaussian"):
        own = found.verdict.sel(kernel=kernel) == "holds"
        there = inside.sel(kernel=kernel)
        print(f"{kernel}: fits at {int((own & there).sum())} of {int(there.sum())} points with "
              f"HD >= Nn, and at {int((own & ~there).sum())} of {int((~there).sum())} with HD < Nn")
        wide = own.sel(width=slice(6, None))
        print(f"  with width >= 6: {int(wide.sum())} of {wide.size}")
    every = tree["findings"].to_dataset()
    for claim in ("rate", "path", "certificate"):
        own = every.sel(claim=claim)
        counts = {v: int((own.verdict == v).sum()) for v in ("holds", "fails", "undecided")}
        print(f"{claim}: {counts}, control fails at {int((own.control_fails == 1).sum())}")
    return next(each for each in figures_of(tree, study_of(tree)) if each.name == "phase-fits")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, draw in (("sen", corollary), ("onset", onset), ("song", certificate)):
        if not (folder / name).exists():
            print(f"{name}: no such sweep in {folder}, its picture stays")
            continue
        figure = draw(attnscope.open_sweep(folder / name))
        (drawn,) = save(figure, HERE, ("png",))
        drawn.replace(HERE / f"sweep-{name}.png")
