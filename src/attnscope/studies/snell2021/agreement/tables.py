"""The tables of the agreement study: the rows of the published ones, and what stands behind them.

ξ is the performance of other normal runs where their attention first agrees better with α; an
asterisk says that it never does, and then the number is ξ*, the performance at the end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes import mean_interval
from attnscope.report import Cell, Table
from attnscope.studies.snell2021.agreement.evidence import COMPARED, Evidence, evidence
from attnscope.studies.snell2021.agreement.gold import gold_table
from attnscope.studies.snell2021.agreement.paper import (
    FIVE,
    FOUR,
    NAMES,
    VARIANTS,
    published,
)
from attnscope.studies.snell2021.agreement.predictions import PERMUTATIONS, WORDS
from attnscope.theory.snell2021.before_training import COUNTED
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement.study import Agreement

FEW = 3
"""Runs below which Student's interval is wider than anything that could be."""
TOP = "A: the largest of the first in the top 5 % of the second"
TITLES = {
    5: f"{TOP}; validation; ξ in accuracy (%)",
    3: "Kendall's τ × 100; validation; ξ in accuracy (%)",
    7: f"{TOP}; training data; ξ in accuracy (%)",
    6: f"{TOP}; validation; ξ in BLEU",
    4: "Kendall's τ × 100; validation; ξ in BLEU",
    8: f"{TOP}; training data; ξ in BLEU of training data, which is not read here",
}
"""What Tables 3 to 8 are; Table 2 is Table 5 in whole percent."""
Line = tuple[Cell, ...]


def tables_of(study: Agreement, run: Readings) -> list[Table]:
    """Return the rows of the published tables first, then what stands behind them."""
    seen = evidence(run)
    numbers = [n for n in VARIANTS if seen.kind == "parallel" or "bleu" not in VARIANTS[n]]
    made = [
        *(row(study, seen, number) for number in numbers),
        frozen(study, seen),
        each_run(seen),
        symbols(study, seen),
        controls(seen),
        conventions(seen),
        lags(seen),
        predicted(seen),
        ends_of_runs(seen),
        data(seen),
    ]
    if study.gold:
        assert study.setup.gold is not None
        made.append(gold_table(study.setup.gold, seen, study.setup.data.train))
    return made


def row(study: Agreement, seen: Evidence, number: int) -> Table:
    """Tabulate the row of one published table, and the paper's under it."""
    split, by, performance = VARIANTS[number]
    found = seen.table(split, by, performance, study.convention)
    # BLEU is read on validation alone, so there is no ξ for Table 8.
    known = (split, performance) != ("train", "bleu")
    rows: list[Line] = [
        (
            "here",
            *(round(found[name].value, 2) for name in FOUR),
            round(found["alpha_uf"].baseline, 2),
            *(str(found[name].xi) if known else None for name in FOUR),
            round(float(seen.reached(split, performance)[-1]), 2) if known else None,
        )
    ]
    paper = published(study.data, number)
    if paper is not None:
        xi = [str(paper.xi[name]) if name in paper.xi else None for name in FOUR]
        printed = (paper.agreement.get(name) for name in FOUR)
        rows.append(("paper", *printed, paper.baseline, *xi, paper.final))
    agreements, contexts = ([f"{symbol}{NAMES[name]}" for name in FOUR] for symbol in "Aξ")
    task = study.data if paper is None else paper.task
    turned = "" if study.convention == "paper" else "; the released code's convention"
    title = f"Table {number}, {task}. {TITLES[number]}{turned}; {_size(seen)}"
    return Table(f"table-{number}", title, ("", *agreements, "Â", *contexts, "ξ*"), tuple(rows))


def frozen(study: Agreement, seen: Evidence) -> Table:
    """Tabulate the row of Table 10."""
    found, names, paper = seen.table(), ("alpha_fr", "alpha_uf"), published(study.data, 10)
    rows: list[Line] = [("here", *(round(found[name].value, 2) for name in names))]
    if paper is not None:
        rows.append(("paper", *(paper.agreement[name] for name in names)))
    title = (
        "Table 10. Attention α^fr that is trained while all else is frozen agrees less with α than "
        f"β^uf does; validation (%); {_size(seen)}"
    )
    return Table("table-10", title, ("", *(f"A{NAMES[name]}" for name in names)), tuple(rows))


def each_run(seen: Evidence) -> Table:
    """Tabulate what the table would say had another normal run been the first."""
    found = []
    for name, following in zip(seen.normal, [*seen.normal[1:], seen.normal[0]], strict=True):
        best = int(np.argmax(seen.curve("accuracy_dev", name)))
        alpha = seen.rows("alpha", name)[best].copy()
        others = (("lexical", "uniform"), ("lexical", following), ("alpha", "frozen"))
        found.append([max(seen.agree(alpha, at) for at in seen.rows(*other)) for other in others])
    rows: list[Line] = [
        (f"α of run {name}", *(round(value, 2) for value in values))
        for name, values in zip(seen.normal, found, strict=True)
    ]
    values = np.array(found)
    mean, low, high = mean_interval(values)
    kind = "95 % interval of the mean"
    if len(values) < FEW:
        kind, low, high = "range", values.min(axis=0), values.max(axis=0)
    rows.append(("mean", *(round(float(value), 2) for value in mean)))
    rows.append((kind, *(f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True))))
    baseline = seen.table()["alpha_uf"].baseline
    columns = ("", *(f"A{NAMES[name]}" for name in ("alpha_uf", "alpha_beta", "alpha_fr")))
    title = (
        "Every normal run in the place of A, with β of the one after it: how far the rows above "
        f"depend on the seed; validation (%); Â is {baseline:.2f}"
    )
    return Table("each-run", title, columns, tuple(rows))


def symbols(study: Agreement, seen: Evidence) -> Table:
    """Say in words which run and which step each symbol comes from."""
    first = f"run A (seed {seen.seed('A')}) at step {seen.steps[seen.best]:,.0f}"
    fixed = {
        "alpha": f"α: {first}, where its validation accuracy is best",
        "beta_px": f"β^px: proxy (seed {seen.seed('proxy')}) at step "
        f"{seen.steps[seen.proxy_best]:,.0f} of this axis, where its validation loss is lowest, "
        f"{100 * seen.proxy_learned:.3g} % below its start"
        + (": it has hardly trained, and says nothing" if seen.proxy_untrained else ""),
        "delta": f"Δ: {first}, as α",
    }
    released = study.convention == "released"
    if released:
        fixed["delta"] += ", its sign turned"
    rows: list[Line] = []
    for name, entry in seen.table(convention=study.convention).items():
        compared = COMPARED[name]
        called = "run B" if compared.run == "B" else compared.run
        chosen = (
            f"{compared.symbol}: {called} (seed {seen.seed(compared.run)}) at step {entry.step:,}, "
            "where the agreement is largest"
        )
        pair, arguments = (fixed[compared.fixed], chosen), NAMES[name]
        if name == "uf_px":
            pair, arguments = (pair, "(β^px, β^uf)") if released else (pair[::-1], arguments)
        over = round(entry.value - entry.baseline, 2)
        rows.append((f"A{arguments}", *pair, round(entry.value, 2), over, entry.rows))
    columns = ("", "first argument", "second argument", "A (%)", "points over Â", "rows")
    title = "Which run and which step each symbol comes from; validation"
    return Table("symbols", title, columns, tuple(rows))


def controls(seen: Evidence) -> Table:
    """Tabulate what the same comparison gives without knowledge."""
    rows: list[Line] = []
    for name in FIVE:
        entry = seen.table()[name]
        shuffled, untrained = seen.shuffled(*seen.pair(name)), seen.agree(*seen.pair(name, False))
        values = (entry.value, entry.baseline, shuffled, untrained)
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
    both = seen.table(), seen.table(convention="released")
    words = {
        "uf_px": "A(β^uf, β^px), and A(β^px, β^uf)",
        "delta_uf": "A(Δ, β^uf), and with Δ's sign turned",
    }
    rows: list[Line] = [
        (text, *(round(found[name].value, 2) for found in both)) for name, text in words.items()
    ]
    title = "The paper's notation and the released code; validation (%)"
    columns = ("", "the paper's notation", "the released code")
    return Table("conventions", title, columns, tuple(rows))


def lags(seen: Evidence) -> Table:
    """Tabulate when knowledge and attention are half way, run by run."""
    names = {name: f"run {name}" for name in seen.normal} | {"frozen": "frozen"}
    known, focused = seen.halves(*names)
    steps = np.stack([known, focused, focused - known], axis=1)
    mean, low, high = mean_interval(steps[:-1])
    interval = f"mean of normal runs, 95 % interval {low[2]:.0f} to {high[2]:.0f}"
    texts = [*names.values(), interval]
    rows: list[Line] = [
        (text, *(round(float(value), 1) for value in values))
        for text, values in zip(texts, [*steps, mean], strict=True)
    ]
    columns = ("", "knowledge is half way at step", "attention is half way at step", "lag (steps)")
    title = (
        "Knowledge first, attention second: mean of max_l β and of 1 - H(α)/log L, each from step "
        "0 to its maximum; what does not rise counts at the last step"
    )
    return Table("lag", title, columns, tuple(rows))


def predicted(seen: Evidence) -> Table:
    """Tabulate what the training pairs alone say of attention."""
    rows: list[Line] = []
    known = {name: (text, seen.prediction(name)) for name, text in WORDS.items()}
    known["px"] = ("β^px of the proxy, trained on bags of words", seen.beta_px)
    known["uf"] = ("β^uf, trained under uniform attention", seen.beta_uf)
    for name, (text, values) in known.items():
        other = None if name == "uf" else round(seen.agree(seen.beta_uf, values), 2)
        chance: Cell = None
        if name in COUNTED:
            found = seen.permuted(name)
            chance = f"{found.mean():.2f} ({found.min():.2f} to {found.max():.2f})"
        agreed = seen.agree(seen.alpha, values)
        rows.append((text, round(agreed, 2), chance, other, round(seen.chance, 2)))
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
        "put training pairs together"
    )
    return Table("predictions", title, columns, tuple(rows))


def ends_of_runs(seen: Evidence) -> Table:
    """Tabulate how well every run did."""
    rows: list[Line] = []
    columns = ["run", "seed", "best (%)", "at step", "end (%)", "training, end (%)", "loss, end"]
    if seen.kind == "parallel":
        columns.append("BLEU, end")
    for name in seen.names:
        accuracy = 100 * seen.curve("accuracy_dev", name)
        best = int(np.argmax(accuracy))
        cells: Line = (
            f"normal, {name}" if name in seen.normal else name,
            seen.seed(name),
            round(float(accuracy[best]), 2),
            int(seen.steps[best]),
            round(float(accuracy[-1]), 2),
            round(float(100 * seen.curve("accuracy_train", name)[-1]), 2),
            round(float(seen.curve("loss_dev", name)[-1]), 4),
            round(float(seen.curve("bleu", name)[-1]), 2),
        )
        rows.append(cells[: len(columns)])
    title = "Validation accuracy of every run, its accuracy on training data, and its loss (nats)"
    return Table("runs", title, tuple(columns), tuple(rows))


def data(seen: Evidence) -> Table:
    """Tabulate what is known of the data."""
    attrs = seen.run["data"].attrs
    rows: list[Line] = [("data set", str(attrs["data"]))]
    if "classes" in attrs:
        rows.append(("classes, the negative one first", ", ".join(attrs["classes"])))
    rows += [(name, _text(value)) for name, value in json.loads(attrs["facts"]).items()]
    return Table("data", "The data", ("", ""), tuple(rows))


def _text(value: object) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {count}" for name, count in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_text(part) for part in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.10g}"
    return str(value)


def _size(seen: Evidence) -> str:
    return f"here: {seen.steps[-1]:,.0f} steps, {len(seen.normal)} normal runs"
