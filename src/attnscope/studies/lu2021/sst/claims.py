"""The claims of ``lu2021.sst``: section 5.2, and whether a variant reproduces it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below, call, within
from attnscope.probes import rank_correlation
from attnscope.probes.lexicon.predictors import fit
from attnscope.studies.lu2021.sst import words
from attnscope.studies.lu2021.sst.tables import PAPER, lone_words
from attnscope.trajectory import Readings, carried, final, initial

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sst.study import Sst

EPOCHS = {
    "FC": (within(15_000, 25_000), "about 20,000 epochs"),
    "TC": (within(10_000, 15_000), "about 12,500 epochs"),
}
"""Where the horizontal axes of Figs 5 and 7 end."""
SCORES = {"FC": (within(2.0, 6.0), "3 to 4"), "TC": (within(0.3, 1.2), "0.6 to 0.8")}
"""Where the largest scores of Fig 4 lie."""
FIG5 = ("powerful", "best")
"""The two words of Fig 5."""
FIG6 = {
    "FC": ("powerful", "stupid", "solid", "suffers", "mess"),
    "TC": ("worst", "mess", "stupid", "suffers", "solid"),
}
"""The five words of the largest scores on SST-2: Fig 6, and for Attn-FC the released script."""
REASONS = {
    "FC, paper": "With an orthonormal U and a learning rate of 0.1 Attn-FC needs many times the "
    "epochs on the paper's axes. There it has the paper's accuracy, scores and leading words; "
    "where the axes end it has none of them.",
    "FC, released": "The released U is 14 times longer than the paper's, and training is faster.",
    "TC, released": "The padding, most of every sentence, first learns the class balance of the "
    "training set, which the dev set does not share: the dev loss rises at first. With some seeds "
    "patience runs out then and there; with the others training goes on for longer than the "
    "paper's.",
}
WITHIN = 0.10
"""The stated distance: ten percent of the norm."""
FREQUENT = 20
"""Words in so many sentences have a purity that is more than chance."""
SNAPSHOT = 1000
"""Epochs between two snapshots of the released code, and so the first point of Fig 7."""


def claims(study: Sst) -> list[Claim]:
    """Return every statement with its criterion and its control."""
    return [_of(case, claim) for case in study.cases for claim in _stated(study, case)]


def _of(case: str, claim: Claim) -> Claim:
    """Return a claim as one of a case: its key and its sentence name it, its readings are its."""
    model, _, variant = case.partition(", ")
    own, name = f"{claim.key}-{model}", f"Attn-{model}"
    if variant == "released":
        own, name = f"{own}-released", f"{name}, as released"
    return replace(
        claim,
        key=own,
        sentence=claim.sentence.replace("{model}", name),
        of=lambda run, argument: claim.of(run.of(case), argument),
    )


def _stated(study: Sst, case: str) -> list[Claim]:
    """Return the claims of one case. Figs 5 to 7 are of SST-2 alone."""
    on_sst2 = study.data == "sst2"
    return [
        *_training(study, case),
        *_theory(study),
        *([_direction(study)] if case.endswith("paper") else []),
        *(_predicted(study, least) for least in (1, FREQUENT)),
        *_attended(),
        *(_around_top() if on_sst2 else []),
        *(_competition() if on_sst2 and study.pair == FIG5 else []),
    ]


def _training(study: Sst, case: str) -> list[Claim]:
    """Say what is reached, when, and which words lead."""
    model, paper = case.split(", ")[0], PAPER.get(study.data)
    if paper is None:
        labels = study.text().test.labels.numpy()
        sentence = "{model} does better on test sentences than the most frequent class."
        criterion, shown = above(float(np.bincount(labels).max() / len(labels))), ""
    else:
        sentence = "{model} reaches the paper's test accuracy, to two points."
        criterion = within(paper[model] - 0.02, paper[model] + 0.02)
        shown = f"{paper[model]:.2%}"
    # What was found out about SST says nothing of other sets.
    reason = REASONS.get(case, "") if paper else ""
    accuracy = Claim(
        "accuracy",
        sentence,
        lambda run, when: when(run.end_test_accuracy),
        final,
        criterion,
        (initial, "the same model before training"),
        "section 5.2",
        shown,
        "share of test sentences, at the best dev loss",
        each=False,
        reason=reason,
    )
    largest = Claim(
        "scores",
        "{model} ends with largest scores as Fig 4 shows them.",
        lambda run, when: when(run.score_all).max("vocab"),
        final,
        SCORES[model][0],
        (initial, "before training"),
        "Figs 4 and 5",
        SCORES[model][1],
        "largest score of all words at the best dev loss",
        reason="A longer U lets small scores and embeddings do what large ones must do otherwise.",
    )
    stopping = Claim(
        "epochs",
        "{model} is best on the dev set where the figures end.",
        call,
        lambda run: final(run.best_epoch),
        EPOCHS[model][0],
        (
            lambda run: run.dev_loss["epoch"].isel(step=run.dev_loss.argmax("step")),
            "where the dev loss is greatest",
        ),
        "Figs 5 and 7",
        EPOCHS[model][1],
        "epoch of the least dev loss",
        reason=reason,
    )
    leaders = Claim(
        "leaders",
        "{model}: the five words of the largest scores are those of Fig 6.",
        lambda run, top: words.names(run).isel(word=top(run)).isin(FIG6[model]).sum("rank"),
        lambda run: words.top_words(run, 5),
        above(4.5),
        (early_leaders, "the five leading words at an eighth of the epochs"),
        "Fig 6",
        ", ".join(FIG6[model]),
        "how many of the five are the same",
        reason=reason,
    )
    return [
        accuracy,
        *([largest] if paper else []),
        *([stopping, leaders] if study.data == "sst2" else []),
    ]


def early_leaders(run: Readings) -> xr.DataArray:
    """Return the five leading words at an eighth of the epochs."""
    eighth = abs(run.score["epoch"] - words.end(run, "best_epoch") / 8).argmin("step")
    return words.leading(run.score.isel(step=eighth), 5)


def _theory(study: Sst) -> list[Claim]:
    """Say how near the leading words are to theory, through all of training and early on."""

    def share(run: Readings, argument: tuple[words.Law, int]) -> xr.DataArray:
        law, order = argument
        top = words.top_words(run, study.top)
        return words.share_within(words.off(run, law, top, top[:, ::order]), WITHIN)

    def early(run: Readings, order: int) -> xr.DataArray:
        top, law = words.top_words(run, study.top), words.LAWS["theorem1"]
        measured = law.measured(run).isel(word=top).astype(float)
        deviation = words.off(run, law, top, top[:, ::order])
        return words.share_within(deviation.where(measured < 0.5 * measured.max("probe")), WITHIN)

    another = "each word against the curve of another of the top words"
    out = []
    for key, law in words.LAWS.items():
        ours = key in ("lemma2", "integral")
        out.append(
            Claim(
                f"fig4-{key}",
                f"{{model}}: most of the {study.top} words of the largest scores stay within "
                f"{WITHIN:.0%} of {law.sentence}, through all of training.",
                share,
                (law, 1),
                above(0.5),
                ((law, -1), another),
                "Lemma 2, eq (8); ours on text" if ours else "section 5.2, Fig 4",
                "not studied" if ours else "most of the words",
                "share of the words, as part of the largest |ds/dt| or score of the word"
                if ours
                else f"share of the words, while the norm is above {words.GROWN:.0%} of its "
                "largest",
                reason="The push of the classifier differs between the sentences of a word, and "
                "eq (8) takes the mean of a product for the product of the means."
                if ours
                else "What stands around a word moves as well, which eqs (9) and (10) hold at "
                "rest: most curves come near theory in the end, not at all times (see the table "
                "of shares).",
            )
        )

    initially = Claim(
        "initial",
        "{model}: until a word has come half its way, Theorem 1 holds for nearly all of the top "
        "words.",
        early,
        1,
        above(0.8),
        (-1, another),
        "section 5, 'at least in initial training stages'",
        "holds",
        f"share of the top {study.top} within {WITHIN:.0%}",
        reason="Early on the averages around a word move faster than the word itself; Lemma 2, "
        "which follows them, holds better (see the claims on it).",
    )
    return [*out, initially]


def _direction(study: Sst) -> Claim:
    def agreement(run: Readings, says: Callable[[xr.DataArray], xr.DataArray]) -> xr.DataArray:
        sides = run.identity.isel(word=words.top_words(run, study.top))
        speed, known = sides.sel(side="speed", drop=True), sides.sel(side="speed").notnull()
        right = np.sign(speed) == says(sides.sel(side="lemma2", drop=True))
        return (right & known).sum(("probe", "rank")) / known.sum(("probe", "rank"))

    return Claim(
        "direction",
        "{model}: at every moment Lemma 2 tells whether the score of a leading word rises or "
        "falls.",
        agreement,
        np.sign,
        above(0.95),
        (xr.ones_like, "a theory that says 'rises', always"),
        "Lemma 2, eq (8); ours on text",
        "the sign of ds/dt",
        f"share of moments and of the top {study.top} words with the right sign",
    )


def _predicted(study: Sst, least: int) -> Claim:
    def explained(run: Readings, shuffled: bool) -> list[float]:
        enough = (run.data.occurrences >= least).to_numpy()
        known = {name: column[enough] for name, column in words.statistics(run).items()}
        gaps = words.vocabulary_gap(run).to_numpy()[:, enough]
        if shuffled:
            gaps = np.stack([np.random.default_rng(i).permutation(g) for i, g in enumerate(gaps)])
        return [fit(gap, known).explained for gap in gaps]

    few = least > 1
    which = f"for words in {least} sentences or more" if few else "over the whole vocabulary"
    return Claim(
        "predicted-frequent" if few else "predicted",
        f"{{model}}: {which}, a word's distance from Theorem 1 is strongly related to its "
        "occurrence, its purity and its purer company.",
        explained,
        False,
        above(0.3),
        (True, "the distances handed to other words"),
        "section 5.2, 'strongly related'; the fit is ours",
        "strongly related",
        "share explained by a linear fit, on words it has not seen",
        reason=""
        if few
        else f"{lone_words(study)} of the vocabulary stands in one sentence, where purity is one "
        "by definition and tells nothing.",
    )


def trend(run: Readings, argument: tuple[str, bool]) -> list[float]:
    """Return the rank correlation with time of what is attended to, in order or shuffled."""
    name, shuffled = argument
    curve = words.attended(run, name)
    out = []
    for seed, row in enumerate(curve.where(curve["epoch_probe"] >= SNAPSHOT).to_numpy()):
        late = row[np.isfinite(row)]
        if shuffled:
            late = np.random.default_rng(seed).permutation(late)
        enough = len(late) > 2
        out.append(float(rank_correlation(np.arange(len(late)), late)) if enough else np.nan)
    return out


def _attended() -> list[Claim]:
    return [
        Claim(
            key,
            f"{{model}}: over training, sentences attend to ever {key} words.",
            trend,
            (name, False),
            criterion,
            ((name, True), "the same readings in shuffled order"),
            "Fig 7",
            paper,
            f"rank correlation of mean {what}, from epoch 1,000",
        )
        for key, name, criterion, paper, what in (
            ("purer", "purity", above(0.7), "rises", "purity of the attended words with time"),
            ("rarer", "occurrences", below(-0.7), "falls", "occurrence of the attended words"),
        )
    ]


def around(run: Readings, chosen: xr.DataArray) -> xr.DataArray:
    """Return the mean purity of what is attended to around some words."""
    return carried(words.attended(run, "purity", chosen).mean("rank", skipna=False))


def above_all(run: Readings, drawn: bool) -> xr.DataArray:
    """Return by how much purity ends higher around the top words, or drawn ones, than anywhere."""
    chosen = words.top_words(run, 5)
    if drawn:
        followed, seeds = run.data.word_number.size, range(chosen.sizes["seed"])
        draws = np.stack([np.random.default_rng(seed).choice(followed, 50) for seed in seeds])
        chosen = xr.DataArray(draws, {"seed": chosen["seed"]}, ("seed", "rank"))
    return final(around(run, chosen)) - final(carried(words.attended(run, "purity")))


def _around_top() -> list[Claim]:
    return [
        Claim(
            "fig6",
            "{model}: around the five top words, almost all attended words end with a purity "
            "close to one.",
            lambda run, when: when(around(run, words.top_words(run, 5))),
            final,
            above(0.9),
            (initial, "before training, when a word is picked at random"),
            "Fig 6",
            "close to one",
            "mean purity of the attended words",
        ),
        Claim(
            "fig7",
            "{model}: over all sentences, the purity of attended words ends lower than around "
            "the top words.",
            above_all,
            False,
            above(0.05),
            (True, "around fifty words drawn at random instead of the top five"),
            "Figs 6 and 7",
            "lower",
            "difference of the mean purities",
        ),
    ]


def frequent_over_pure(run: Readings, part: float) -> xr.DataArray:
    """Return the ratio of the norms of the pair after a part of the epochs."""
    norm = run.norm.isel(word=words.rivals(run)).astype(float)
    after = words.end(run, "best_epoch") * part
    at = after.copy(data=np.searchsorted(norm["epoch"], after))
    norm = norm.isel(step=at.astype(int))
    return norm.sel(pair="frequent", drop=True) / norm.sel(pair="pure", drop=True)


def kept(run: Readings, which: str) -> xr.DataArray:
    """Return the final score of a word of the pair over its largest."""
    score = run.score.isel(word=words.rivals(run).sel(pair=which, drop=True)).astype(float)
    most = score.max("step")
    # A score that never rose has nothing to drop from.
    return (final(carried(score)) / most).where(most > 0, 1.0)


def _competition() -> list[Claim]:
    return [
        Claim(
            "fig5-first",
            "{model}: the frequent word's embedding is longer than the pure word's in the first "
            "part of training.",
            frequent_over_pure,
            0.25,
            above(1.2),
            (0.0, "before training"),
            "Fig 5, third column",
            "best before powerful",
            "ratio of the norms at a quarter of the epochs",
        ),
        Claim(
            "fig5-drop",
            "{model}: the score of the frequent, impure word rises and then drops.",
            kept,
            "frequent",
            below(0.98),
            ("pure", "the pure word's score"),
            "Fig 5, second column",
            "a score drop in the final stage",
            "final score over its largest",
        ),
    ]
