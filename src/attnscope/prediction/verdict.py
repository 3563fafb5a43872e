"""The first section on labelled text: what to expect, in words."""

from __future__ import annotations

from attnscope.prediction.asked import AskedLabelled
from attnscope.prediction.calibration import how_well
from attnscope.prediction.learnable import parity_sentence, together
from attnscope.probes.evidence.carried import texts_needed
from attnscope.report.section import Section

SUFFICE = 0.9
"""A single word suffices where it finds this share of what all words together find above the
majority."""
NAMED = 8
"""Words that a sentence names."""


def verdict_section(asked: AskedLabelled) -> Section:
    """Say whether single words suffice, whether words say nothing, or that none can tell."""
    return Section("verdict", "What to expect", (*_verdict(asked), *_rest(asked)))


def _verdict(asked: AskedLabelled) -> tuple[str, ...]:
    found = asked.accuracy
    if not asked.told:
        pair = together(asked)
        return (_cannot_tell(asked) if pair is None else parity_sentence(asked, pair),)
    if found.bag.low <= found.majority.share:
        return (
            "Nothing to learn from single words: a bag of words finds the label of "
            f"{found.bag.share:.1%} of held-out texts, and guessing the most frequent class finds "
            f"{found.majority.share:.1%}. Attention will have no word to go to; if the label "
            "follows from the order or from combinations of words (XOR, permutations), it has to "
            "be learned without that help, or is not learned at all.",
            f"It would look at {top_words(asked)}.",
        )
    gained = found.bag.share - found.majority.share
    by_one = found.one_word.share - found.majority.share
    if by_one >= SUFFICE * gained:
        said = (
            "Single words suffice, as far as words go: the one word of a text that says most finds "
            f"the label of {found.one_word.share:.1%} of held-out texts, all words together find "
            f"{found.bag.share:.1%}. Attention will settle on such words."
        )
    else:
        said = (
            "Words carry the label, several together: the one word of a text that says most finds "
            f"the label of {found.one_word.share:.1%} of held-out texts, all words together "
            f"{found.bag.share:.1%}. Attention will be drawn to such words, and will spread."
        )
    return said, f"It will look at {top_words(asked)} first."


def _cannot_tell(asked: AskedLabelled) -> str:
    sure, texts = asked.certainty, len(asked.texts)
    best = int(sure.z[1:].argmax()) + 1
    needed = texts_needed(texts, float(sure.z[best]), sure.critical)
    return (
        f"Cannot tell: none of the {len(asked.table.words) - 1:,} words stands out from chance in "
        f"{texts:,} texts. The nearest, '{asked.table.words[best]}', is {sure.z[best]:.1f} "
        f"standard errors from nothing, and {sure.critical:.1f} are needed with so many words: "
        f"about {needed:,} texts of this kind would be, if it says anything at all."
    )


def _rest(asked: AskedLabelled) -> tuple[str, ...]:
    found = asked.accuracy
    lines = [
        f"A bag of words has {found.bag.share:.1%} already (95 % interval {found.bag.low:.1%} to "
        f"{found.bag.high:.1%}, {found.texts:,} texts held out in turn); always the most frequent "
        f"class: {found.majority.share:.1%}. A model with attention has to beat this."
    ]
    if asked.without:
        gone = ", ".join(f"'{word}' ({asked.table.taken_out[word]:,})" for word in asked.without)
        lines.append(f"Left out of every text, with how often each stood there: {gone}.")
    if asked.told:
        lines.append(how_well())
    return tuple(lines)


def top_words(asked: AskedLabelled, count: int = NAMED) -> str:
    """Return the words that are picked most often, of those beyond chance, in quotes."""
    sure = [i for i in asked.ranked if asked.certainty.sure[i]] or asked.ranked
    return ", ".join(f"'{asked.table.words[i]}'" for i in sure[:count])
