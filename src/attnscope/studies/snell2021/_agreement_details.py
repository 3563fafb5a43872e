"""What stands behind the rows of ``snell2021.agreement``: runs, steps, baselines, predictions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes.intervals import mean_interval
from attnscope.report.page import Cell, Table
from attnscope.studies.snell2021._agreement_evidence import Evidence
from attnscope.studies.snell2021._agreement_paper import (
    ALPHA_BETA,
    ALPHA_FR,
    ALPHA_UF,
    DELTA_UF,
    FOUR,
    NAMES,
    UF_PX,
)
from attnscope.studies.snell2021._agreement_predictions import COUNTED, PERMUTATIONS, WORDS

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement

FIVE = (*FOUR, ALPHA_FR)
FEW = 3
"""Runs below which Student's interval is wider than anything that could be."""
PROBES = {
    ALPHA_UF: ("β^uf", "uniform"),
    UF_PX: ("β^uf", "uniform"),
    DELTA_UF: ("β^uf", "uniform"),
    ALPHA_BETA: ("β", "B"),
    ALPHA_FR: ("α^fr", "frozen"),
}
"""Which quantity is taken where the agreement is largest, and the run it comes from."""


def letters(seen: Evidence) -> dict[int, str]:
    """Return what the runs are called: A, B, ... for normal ones, else their case."""
    cases = seen.tree["observables"]["case"].to_numpy()
    normal = {run: chr(ord("A") + i) for i, run in enumerate(seen.runs.normal)}
    return {run: normal.get(run, str(case)) for run, case in enumerate(cases)}


def symbols(study: Agreement, seen: Evidence) -> Table:
    """Say in words which run and which step each symbol comes from."""
    steps, best = seen.runs.steps, seen.runs.best
    first = f"run A (seed {_seed(seen, seen.runs.first)}) at step {steps[best]:,.0f}"
    fixed = {
        ALPHA_UF: f"α: {first}, where its validation accuracy is best",
        UF_PX: f"β^px: proxy (seed {_seed(seen, seen.runs.proxy)}) at step "
        f"{steps[seen.runs.proxy_best]:,.0f} of this axis, where its validation loss is lowest",
        DELTA_UF: f"Δ: {first}, as α",
        ALPHA_BETA: f"α: {first}, where its validation accuracy is best",
        ALPHA_FR: f"α: {first}, where its validation accuracy is best",
    }
    numbers = {name: run for run, name in letters(seen).items()}
    found = seen.table(convention=study.convention)
    rows: list[tuple[Cell, ...]] = []
    for name in FIVE:
        entry, (symbol, run) = found[name], PROBES[name]
        called = f"run {run}" if run == "B" else run
        chosen = (
            f"{symbol}: {called} (seed {_seed(seen, numbers[run])}) at step {entry.step:,}, where "
            "the agreement is largest"
        )
        pair = [fixed[name], chosen]
        if name == UF_PX and study.convention == "paper":
            pair.reverse()
        if name == DELTA_UF and study.convention == "released":
            pair[0] += ", its sign turned"
        values = (round(entry.value, 2), round(entry.value - entry.baseline, 2), entry.rows)
        rows.append((f"A{_order(name, study.convention)}", *pair, *values))
    columns = ("", "first argument", "second argument", "A (%)", "points over Â", "rows")
    title = "Which run and which step each symbol comes from; validation"
    return Table("symbols", title, columns, tuple(rows))


def controls(seen: Evidence) -> Table:
    """Tabulate what the same comparison gives without knowledge."""
    found = seen.table()
    rows: list[tuple[Cell, ...]] = []
    for name in FIVE:
        trained, untrained = seen.pair(name), seen.pair(name, trained=False)
        values = (
            found[name].value,
            found[name].baseline,
            seen.shuffled(*trained),
            seen.agree(*untrained),
        )
        rows.append((f"A{NAMES[name]}", *(round(value, 2) for value in values)))
    columns = (
        "",
        "A (%)",
        "random order, exact (%)",
        "second argument shuffled once (%)",
        "second argument before training, step 0 (%)",
    )
    title = "Agreement beside what it is without knowledge; the paper's convention, validation"
    return Table("controls", title, columns, tuple(rows))


def conventions(seen: Evidence) -> Table:
    """Tabulate the two quantities that the released code reads in another way."""
    paper, released = seen.table(), seen.table(convention="released")
    rows = tuple(
        (what, round(paper[name].value, 2), round(released[name].value, 2))
        for name, what in (
            (UF_PX, "A(β^uf, β^px), and A(β^px, β^uf)"),
            (DELTA_UF, "A(Δ, β^uf), and with Δ's sign turned"),
        )
    )
    title = "The paper's notation and the released code; validation (%)"
    columns = ("", "the paper's notation", "the released code")
    return Table("conventions", title, columns, rows)


def each_run(seen: Evidence) -> Table:
    """Tabulate what the table would say had another normal run been the first."""
    runs, names = seen.runs, letters(seen)
    found = []
    for place, run in enumerate(runs.normal):
        best = int(np.argmax(runs.curve("accuracy_dev", run)))
        alpha = runs.rows("alpha", run)[best]
        following = runs.normal[(place + 1) % len(runs.normal)]
        others = (("lexical", runs.uniform), ("lexical", following), ("alpha", runs.frozen))
        found.append(
            [max(seen.agree(alpha, at) for at in runs.rows(name, other)) for name, other in others]
        )
    rows: list[tuple[Cell, ...]] = [
        (f"α of run {names[run]}", *(round(value, 2) for value in values))
        for run, values in zip(runs.normal, found, strict=True)
    ]
    values = np.array(found)
    mean, low, high = mean_interval(values)
    kind = "95 % interval of the mean"
    if len(values) < FEW:
        kind, low, high = "range", values.min(axis=0), values.max(axis=0)
    rows.append(("mean", *(round(float(value), 2) for value in mean)))
    rows.append((kind, *(f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True))))
    columns = ("", *(f"A{NAMES[name]}" for name in (ALPHA_UF, ALPHA_BETA, ALPHA_FR)))
    title = (
        "Every normal run in the place of A, with β of the one after it: how far the rows above "
        f"depend on the seed; validation (%); Â is {seen.table()[ALPHA_UF].baseline:.2f}"
    )
    return Table("each-run", title, columns, tuple(rows))


def lags(seen: Evidence) -> Table:
    """Tabulate when knowledge and attention are half way, run by run."""
    rows: list[tuple[Cell, ...]] = []
    names = letters(seen)
    for case, numbers in (("normal", seen.runs.normal), ("frozen", [seen.runs.frozen])):
        for run, known, focused in zip(numbers, *seen.halves(case), strict=True):
            called = f"run {names[run]}" if case == "normal" else "frozen"
            steps = (float(known), float(focused), float(focused - known))
            rows.append((called, *(round(step, 1) for step in steps)))
    mean, low, high = (float(part) for part in mean_interval(seen.lags("normal")))
    interval = f"mean of normal runs, 95 % interval {low:.0f} to {high:.0f}"
    known, focused = seen.halves("normal")
    rows.append((interval, *(round(float(v), 1) for v in (known.mean(), focused.mean(), mean))))
    columns = (
        "",
        "knowledge is half way at step",
        "attention is half way at step",
        "lag (steps)",
    )
    title = (
        "Knowledge first, attention second: mean of max_l β and of 1 - H(α)/log L, each from step "
        "0 to its maximum; what does not rise counts at the last step"
    )
    return Table("lag", title, columns, tuple(rows))


def predicted(seen: Evidence) -> Table:
    """Tabulate what the training pairs alone say of attention."""
    rows: list[tuple[Cell, ...]] = []
    alpha, beta = seen.runs.alpha, seen.beta_uf
    known = {name: (text, seen.prediction(name)) for name, text in WORDS.items()}
    known["px"] = ("β^px of the proxy, trained on bags of words", seen.runs.beta_px)
    known["uf"] = ("β^uf, trained under uniform attention", beta)
    for name, (text, values) in known.items():
        other = None if name == "uf" else round(seen.agree(beta, values), 2)
        chance: Cell = None
        if name in COUNTED:
            found = seen.permuted(name)
            chance = f"{found.mean():.2f} ({found.min():.2f} to {found.max():.2f})"
        tied = round(seen.tied(values), 2)
        rows.append((text, round(seen.agree(alpha, values), 2), chance, other, tied))
    columns = (
        "v",
        "A(α, v) (%)",
        "the same, random pairs (%)",
        "A(β^uf, v) (%)",
        "random position (%)",
    )
    title = (
        "Prediction before training: how well v, from the training data alone, says where run A "
        f"looks after training; validation. Random pairs: mean and range of {PERMUTATIONS} ways to "
        "put training pairs together; random position: with the ties of v"
    )
    return Table("predictions", title, columns, tuple(rows))


def runs(seen: Evidence) -> Table:
    """Tabulate how well every run did."""
    rows: list[tuple[Cell, ...]] = []
    for run, name in letters(seen).items():
        accuracy = 100 * seen.runs.curve("accuracy_dev", run)
        best = int(np.argmax(accuracy))
        ends: list[Cell] = [
            round(float(accuracy[-1]), 2),
            round(float(100 * seen.runs.curve("accuracy_train", run)[-1]), 2),
            round(float(seen.runs.curve("loss_dev", run)[-1]), 4),
        ]
        if seen.tree["data"].attrs["kind"] == "parallel":
            ends.append(round(float(seen.runs.curve("bleu", run)[-1]), 2))
        called = f"normal, {name}" if run in seen.runs.normal else name
        step = int(seen.runs.steps[best])
        rows.append((called, _seed(seen, run), round(float(accuracy[best]), 2), step, *ends))
    names = ("run", "seed", "best (%)", "at step", "end (%)", "training, end (%)", "loss, end")
    columns = (*names, "BLEU, end")[: len(rows[0])]
    title = "Validation accuracy of every run, its accuracy on training data, and its loss (nats)"
    return Table("runs", title, columns, tuple(rows))


def data(seen: Evidence) -> Table:
    """Tabulate what is known of the data."""
    attrs = seen.tree["data"].attrs
    facts = json.loads(attrs["facts"])
    rows: list[tuple[Cell, ...]] = [("data set", str(attrs["data"]))]
    if "classes" in attrs:
        rows.append(("classes, the negative one first", ", ".join(attrs["classes"])))
    rows += [(name, _text(value)) for name, value in facts.items()]
    return Table("data", "The data", ("", ""), tuple(rows))


def _text(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {count}" for name, count in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_text(part) for part in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.10g}"
    return str(value)


def _order(name: str, convention: str) -> str:
    return "(β^px, β^uf)" if (name, convention) == (UF_PX, "released") else NAMES[name]


def _seed(seen: Evidence, run: int) -> int:
    return int(seen.tree["observables"]["seed"].to_numpy()[run])
