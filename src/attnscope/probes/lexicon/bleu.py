"""BLEU of translations, by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence

from attnscope.errors import AttnscopeError


def corpus_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """Score plain text against one reference each, from 0 to 100 (Papineni et al. 2002).

    It is sacrebleu's default: words as in mteval-v13a, exponential smoothing, upper and lower case
    told apart (Post 2018).

    Args:
        translations: one text a sentence, as it would be printed.
        references: what each should have been.

    Raises:
        AttnscopeError: sacrebleu is not installed, or there are not as many of both.

    >>> corpus_bleu(["a man rides a red bike"], ["a man rides a red bike"])
    100.0
    """
    if len(translations) != len(references) or not references:
        raise AttnscopeError(
            f"there are {len(translations)} translations and {len(references)} references: "
            "expected as many, one or more."
        )
    try:
        import sacrebleu
    except ImportError as error:
        raise AttnscopeError(
            "sacrebleu is not installed: expected it for BLEU. `pip install attnscope[text]` "
            "brings it."
        ) from error
    # Texts of pieces are plain, though they may look tokenised to sacrebleu, which then warns.
    found = sacrebleu.corpus_bleu(list(translations), [list(references)], force=True)
    return min(100.0, round(float(found.score), 10))
