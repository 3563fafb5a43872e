"""When attention will start and be half way: a section, and how well such times have held."""

from __future__ import annotations

import numpy as np

from attnscope.datasets.kinds import LabelledText
from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import AskedLabelled
from attnscope.prediction.pace import (
    MODELS,
    MOMENTS,
    PLANS,
    Moment,
    Plan,
    Timed,
    Told,
    calibrated,
    fitted,
    moments,
    system_curve,
    system_plan,
    timed,
)
from attnscope.probes.evidence.bags import LabelledBags, labelled_bags
from attnscope.report import Cell, Figure, Line, Panel, Rule, Section, Table
from attnscope.tasks.word_sequences import word_sequences

TEXTS, LIMIT, HELD_OUT = 6000, 60, 400
"""What the models were trained on: texts at most, words of a text, texts that are held out."""
NAMED = {"start": "starts", "half": "is half way"}
TITLE = "When attention will come"


def when_section(asked: AskedLabelled) -> Section | None:
    """Say at which step attention starts and is half way, for both models and both optimizers."""
    if not asked.told or not timed():
        return Section(
            "when",
            TITLE,
            (
                "Cannot tell: no word stands out from chance, and when attention comes is a matter "
                "of how much words say.",
            ),
        )
    asked.tell("following attention over a training", 0, 0)
    try:
        bags, about = _as_trained(asked)
    except AttnscopeError as error:
        return Section("when", TITLE, (f"Cannot tell: {error}",))
    curves = {plan: system_curve(bags, plan) for plan in PLANS if plan.model == MODELS[0]}
    told: dict[Plan, dict[Moment, Told]] = {}
    for plan in _measured():
        said = moments(*curves[system_plan(plan)])
        if np.isnan(said["half"]):
            return Section("when", TITLE, ("Cannot tell: attention never leaves uniform here.",))
        told[plan] = {moment: calibrated(said[moment], plan, moment) for moment in MOMENTS}
    return Section(
        "when",
        TITLE,
        (*(_sentence(plan, one) for plan, one in told.items()), *_about(about)),
        tables=(_table(told),),
        figures=(_figure(curves, told),),
    )


def _as_trained(asked: AskedLabelled) -> tuple[LabelledBags, str]:
    """Return the texts as the models would see them, and which these are, in words."""
    data, about = asked.data, ""
    pair: tuple[str, str] | None = None
    if len(data.classes) > 2:
        sizes = np.bincount(asked.labels, minlength=len(data.classes))
        first, second = sorted(int(i) for i in np.argsort(-sizes, kind="stable")[:2])
        pair = (data.classes[first], data.classes[second])
        about = f"'{pair[0]}' against '{pair[1]}', the two largest classes; "
    texts = word_sequences(
        LabelledText(data.name, data.classes, data.splits),
        classes=pair,
        most=HELD_OUT,
        limit=LIMIT,
        train_most=TEXTS,
    )
    gone = [i for i, word in enumerate(texts.words) if word in asked.without]
    rows = [row[~np.isin(row, gone)] for row in texts.train.ids]
    bags = labelled_bags(rows, texts.train.labels, len(texts.words), 2)
    return bags, f"{about}{len(bags):,} training texts, cut at {LIMIT} words"


def _sentence(plan: Plan, told: dict[Moment, Told]) -> str:
    who = "The bag of words" if plan.model == MODELS[0] else "The LSTM"
    said = " and ".join(
        f"{NAMED[moment]} at step {_near(one.step)} ({_near(one.low)} to {_near(one.high)})"
        for moment, one in told.items()
        if not np.isnan(one.step)
    )
    fitted_only = "" if _rows(plan, "judged on") else " (an empirical law, judged on no set yet)"
    return (
        f"{who} with attention ({plan.model}), {plan.optimizer} at rate {plan.rate:g}, "
        f"{plan.steps:,} steps of {plan.batch} texts: attention {said}{fitted_only}."
    )


def _about(about: str) -> tuple[str, ...]:
    return (
        "Attention starts when it has gone a tenth, and is half way when it has gone half, of its "
        "way from uniform to where it is most concentrated in that run (mean of 1 - H(α)/ln L over "
        "texts); in brackets 95 % intervals for one more set.",
        "For the bag of words this is theory: its training reduced to two numbers a word and "
        "solved, times one factor. For the LSTM it is an empirical law: the same steps, times a "
        f"factor. {how_timely()}",
        f"Followed on {about}. SGD at a smaller rate, with as many more steps: the step times the "
        "rate above over yours.",
    )


def _near(step: float) -> str:
    """Return a step to two digits, as it is not known better."""
    return f"{float(f'{step:.2g}'):,.0f}"


def _whole(step: float) -> Cell:
    return None if np.isnan(step) else round(step)


def _between(told: Told) -> Cell:
    return "not known" if np.isnan(told.step) else f"{told.low:.0f} to {told.high:.0f}"


def _table(told: dict[Plan, dict[Moment, Told]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for plan, both in told.items():
        cells: list[Cell] = [plan.model, plan.optimizer, plan.rate, plan.steps]
        for one in both.values():
            cells += [_whole(one.step), _between(one)]
        error = errors(plan, "half")
        rows.append((*cells, "theory" if plan.model == MODELS[0] else "empirical law", *error[:2]))
    columns = (
        *("model", "optimizer", "rate", "steps", "starts (step)", "95 % interval"),
        *("half way (step)", "95 % interval of it", "by"),
        *("off on judged sets (%)", "off if one step were said for all (%)"),
    )
    return Table("when", TITLE, columns, tuple(rows))


def _figure(
    curves: dict[Plan, tuple[np.ndarray, np.ndarray]], told: dict[Plan, dict[Moment, Told]]
) -> Figure:
    panels = []
    for plan, (steps, curve) in curves.items():
        factor = told[plan]["half"].step / told[plan]["half"].system
        at = steps * factor
        panels.append(
            Panel(
                f"{plan.model}, {plan.optimizer}",
                "step",
                "concentration of attention",
                (
                    Line(at[at <= plan.steps], curve[at <= plan.steps], "said", 0),
                    Rule(told[plan]["start"].step, "starts", vertical=True),
                    Rule(told[plan]["half"].step, "half way", vertical=True),
                ),
            )
        )
    return Figure(
        "when",
        "Attention over a training that has not been done",
        "Mean of 1 - H(α)/ln L over training texts, by the two-variable system: 0 is uniform "
        "attention, 1 is attention to one word.",
        tuple(panels),
        columns=2,
    )


def errors(plan: Plan, moment: Moment) -> tuple[Cell, Cell, Cell]:
    """Return how far off the judged sets were, in percent: mean, that of a constant, the most."""
    own = fitted(timed(), plan, moment)
    rows = _rows(plan, "judged on")
    if not rows:
        return None, None, None
    off = [abs(row.said[moment] * own.factor / row.measured(moment) - 1) for row in rows]
    constant = [abs(own.constant / row.measured(moment) - 1) for row in rows]
    return (
        round(100 * float(np.mean(off)), 1),
        round(100 * float(np.mean(constant)), 1),
        round(100 * float(np.max(off)), 1),
    )


def _rows(plan: Plan, role: str) -> list[Timed]:
    return [row for row in timed() if (row.model, row.optimizer, row.role) == (*_key(plan), role)]


def _key(plan: Plan) -> tuple[str, str]:
    return plan.model, plan.optimizer


def _measured() -> list[Plan]:
    """Return the trainings that factors were fitted for."""
    return [plan for plan in PLANS if len(_rows(plan, "chosen on")) > 1]


def how_timely() -> str:
    """Say in a sentence how far such times can be trusted."""
    if not timed():
        return "How well such times hold has not been measured."
    said = []
    for plan in _measured():
        mean, constant, most = errors(plan, "half")
        if mean is not None:
            said.append(
                f"{plan.name} {mean:.0f} % ({most:.0f} % at most, {len(_rows(plan, 'judged on'))} "
                f"sets; one step for all sets: {constant:.0f} %)"
            )
    names = ", ".join(row.name for row in _rows(PLANS[0], "chosen on"))
    return (
        f"Factors were fitted on {names}; on other sets the step of half way was off by "
        f"{'; '.join(said)}, on average."
    )


def timing_table() -> Table:
    """Return every set with the steps said and measured."""
    rows: list[tuple[Cell, ...]] = []
    for plan in _measured():
        own_rows = (row for row in timed() if (row.model, row.optimizer) == _key(plan))
        for row in sorted(own_rows, key=lambda row: (row.role, row.name)):
            cells: list[Cell] = [plan.name, row.name, row.role.replace("chosen", "fitted")]
            for moment in MOMENTS:
                told = calibrated(row.said[moment], plan, moment)
                seen = row.measured(moment)
                cells += [
                    _whole(told.step),
                    _between(told),
                    round(seen),
                    None if np.isnan(told.step) else round(100 * (told.step / seen - 1), 1),
                ]
            own = calibrated(row.shuffled["half"], plan, "half")
            rows.append((*cells, _whole(own.step), round(own.constant)))
    columns = (
        *("training", "set", "used to", "starts, said", "95 % interval", "measured", "off (%)"),
        *("half way, said", "its 95 % interval", "half way, measured", "half way off (%)"),
        *("with shuffled labels", "one step for all"),
    )
    return Table("when", "When attention came: steps said and measured", columns, tuple(rows))
