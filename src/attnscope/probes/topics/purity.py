"""Topic purity and occurrence of words, and of the words that sentences attend to."""

from __future__ import annotations

import numpy as np
import torch

from attnscope.tasks.bags import Bags


def topic_purity(bags: Bags, classes: int) -> np.ndarray:
    """How much a word says about the label, from 0 (nothing) to 1 (everything).

    With two classes δ(w) = |δ₊(w) - δ₋(w)|, the difference of the shares of positive and negative
    sentences among those that hold w (Lu 2021, section 5). With J classes the share of the most
    frequent one is put on the same scale, (J max_j δ_j(w) - 1)/(J - 1), which for J = 2 is δ(w).

    Args:
        bags: the training sentences.
        classes: J.

    Returns:
        Shape ``(word,)``; NaN for words that no sentence holds.
    """
    table = class_counts(bags, classes)
    total = table.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((classes * table.max(axis=1) / total - 1) / (classes - 1))


def class_counts(bags: Bags, classes: int) -> np.ndarray:
    """How many sentences of each class hold a word, each counted once; ``(word, class)``."""
    pairs = torch.unique(bags.sentences * bags.vocabulary + bags.words)
    word, label = pairs % bags.vocabulary, bags.labels[pairs // bags.vocabulary]
    counts = torch.bincount(word * classes + label, minlength=bags.vocabulary * classes)
    return counts.view(bags.vocabulary, classes).numpy()


def attended_words(scores: torch.Tensor, bags: Bags, generator: torch.Generator) -> torch.Tensor:
    """The word of the largest score in each sentence; ties are broken by a throw of the dice.

    Args:
        scores: s_w of all words, shape ``(word,)``.
        bags: the sentences.
        generator: the dice.

    Returns:
        Word ids, shape ``(sentence,)``.
    """
    by_position = scores.detach()[bags.ids]
    if bags.mask is not None:
        by_position = by_position.masked_fill(~bags.mask, -torch.inf)
    best = by_position == by_position.amax(dim=1, keepdim=True)
    dice = torch.rand(best.shape, generator=generator, dtype=torch.float64).masked_fill(~best, -1.0)
    return bags.ids.gather(1, dice.argmax(dim=1, keepdim=True))[:, 0]


def purer_company(bags: Bags, purity: np.ndarray) -> np.ndarray:
    """Share of the sentences with w that also hold a word of higher purity than w's own.

    Args:
        bags: the training sentences.
        purity: δ of every word, shape ``(word,)``.

    Returns:
        Shape ``(word,)``; NaN for words that no sentence holds.
    """
    pairs = torch.unique(bags.sentences * bags.vocabulary + bags.words).numpy()
    sentence, word = pairs // bags.vocabulary, pairs % bags.vocabulary
    top = np.zeros(len(bags))
    np.maximum.at(top, sentence, purity[word])
    purer = top[sentence] > purity[word]
    total = np.bincount(word, minlength=bags.vocabulary)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(word, purer, minlength=bags.vocabulary) / total)


def rival_words(bags: Bags, classes: int) -> tuple[int, int] | None:
    """Choose a pair as that of Lu 2021, Fig 5: a pure word and a frequent, less pure one.

    The pure word is the most frequent one of the highest purity among words in five sentences or
    more; the other is the most frequent word of the same class whose purity is below 0.9 and
    above one half, or failing that above none.

    Args:
        bags: the training sentences.
        classes: J.

    Returns:
        The numbers of both, or ``None`` if there is no such pair.
    """
    counts, purity = class_counts(bags, classes), topic_purity(bags, classes)
    occurrences = counts.sum(axis=1)
    seen = np.flatnonzero(occurrences >= min(5, occurrences.max()))
    pure = int(seen[np.lexsort((-occurrences[seen], -purity[seen]))[0]])
    own_class = counts.argmax(axis=1) == counts[pure].argmax()
    for low in (0.5, 0.0, -1.0):
        rest = np.flatnonzero(own_class & (occurrences > 0) & (purity > low) & (purity < 0.9))
        rest = rest[rest != pure]
        if rest.size:
            return pure, int(rest[occurrences[rest].argmax()])
    return None
