"""The words that attention will pick, with how sure, and how much of the label each carries."""

from __future__ import annotations

import numpy as np

from attnscope.prediction.asked import AskedLabelled
from attnscope.probes.evidence.carried import information, label_entropy
from attnscope.report import Dots, Figure, Panel, Rule, Section, Table

PRINTED = 20
KEPT = 1000
PER_CLASS = 8
MOST_CLASSES = 12
DRAWN = 24


def words_section(asked: AskedLabelled) -> Section:
    """Rank words by the share of texts in which they are predicted to get most attention."""
    bits, entropy = information(asked.table.bags), label_entropy(asked.table.bags)
    order = asked.ranked
    rows = tuple(_row(asked, i, bits[i] / entropy if entropy else 0.0) for i in order[:KEPT])
    columns = (
        "word",
        "picked in (% of texts)",
        "speaks for",
        "of its texts (%)",
        "texts",
        "carries (% of the label)",
        "how sure",
    )
    best = int(bits[1:].argmax()) + 1 if len(bits) > 1 else 0
    sentences = (
        "A word is picked in a text if it attracts more than all others there. Of the label's "
        f"{entropy:.2f} bits the presence of '{asked.table.words[best]}' carries most, "
        f"{bits[best] / entropy if entropy else 0:.1%}.",
        f"How sure: 'yes' is beyond chance though {len(asked.table.words) - 1:,} words were looked "
        "at, 'likely' would be for one word alone, 'cannot tell' is neither.",
    )
    return Section(
        "words",
        "The words that attention will pick",
        sentences,
        tables=(
            Table("words", "Words by how often attention picks them", columns, rows[:PRINTED]),
            Table("all-words", f"The first {len(rows):,} words", columns, rows, folded=True),
        ),
        figures=(_figure(asked, order[:DRAWN]),) if order else (),
    )


def classes_section(asked: AskedLabelled) -> Section | None:
    """List the words that speak for each class."""
    table, sure = asked.table, asked.certainty
    sizes = np.bincount(asked.labels, minlength=len(asked.classes))
    shown = np.argsort(-sizes, kind="stable")[:MOST_CLASSES]
    weight = np.where(sure.sure, asked.picked, -1.0)
    weight[0] = -1.0
    rows = []
    for c in sorted(map(int, shown)):
        own = np.where(asked.evidence.argmax(axis=1) == c, weight, -1.0)
        best = [int(i) for i in own.argsort()[::-1][:PER_CLASS] if own[i] > 0]
        words = ", ".join(table.words[i] for i in best) or "no word beyond chance"
        rows.append((asked.classes[c], int(sizes[c]), words))
    left = len(asked.classes) - len(rows)
    said = f" The {left} smallest classes are left out." if left else ""
    return Section(
        "classes",
        "Class by class",
        (f"Words that speak for each class, those that will be picked most often first.{said}",),
        tables=(Table("classes", "Words of each class", ("class", "texts", "words"), tuple(rows)),),
    )


def _row(asked: AskedLabelled, i: int, carried: float) -> tuple[str | float | int, ...]:
    bags, sure = asked.table.bags, asked.certainty
    favoured = int(asked.evidence[i].argmax())
    texts = float(bags.texts_with[i])
    z = float(sure.z[i])
    return (
        asked.table.words[i],
        round(100 * float(asked.picked[i]), 2),
        asked.classes[favoured],
        round(100 * float(bags.by_class[i, favoured]) / texts, 1),
        int(texts),
        round(100 * carried, 2),
        "yes" if sure.sure[i] else "likely" if z > 1.96 else "cannot tell",
    )


def _figure(asked: AskedLabelled, best: list[int]) -> Figure:
    sure, place = asked.certainty, np.arange(len(best), dtype=float)
    odds, error = sure.log_odds[best], sure.error[best]
    dots = Dots(place, odds, odds - 1.96 * error, odds + 1.96 * error, "log odds, 95 % interval")
    panel = Panel(
        "What the picked words say",
        "word",
        "log odds of its class",
        (dots, Rule(0.0, "nothing")),
        xticks=tuple((float(x), asked.table.words[i]) for x, i in zip(place, best, strict=True)),
    )
    return Figure(
        "word-odds",
        "The words that will be picked most, and how surely they speak for a class",
        "Log odds of the class that a word speaks for, in texts with it against texts without it, "
        "with the 95 % interval. What reaches 0 may be chance.",
        (panel,),
        columns=1,
    )
