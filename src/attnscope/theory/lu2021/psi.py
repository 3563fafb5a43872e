"""Means over Ψ_t, the training sentences that hold a word t, of what stands around the word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.tasks.bags import Bags
from attnscope.theory.arrays import Numbers, float64, word_numbers


@dataclass(frozen=True, eq=False)
class PsiAverages:
    """Means over Ψ_t for each word t, at one time or, with leading axes, along a run.

    Args:
        inverse_z: ⟨1/Z(χ∖t)⟩, shape ``(..., word)``.
        context: ⟨v̄(χ∖t)⟩, shape ``(..., word, dim)``.
        ratio: ⟨Z(χ)/Z(χ∖t)⟩, shape ``(..., word)``; 1 + exp(s_t)⟨1/Z(χ∖t)⟩ if t never repeats.
    """

    inverse_z: np.ndarray
    context: np.ndarray
    ratio: np.ndarray


class PsiSets:
    """The sentences around each of some words, ready for taking means at many times.

    χ∖t is the sentence without *any* t, however often t stands in it, and every sentence that
    holds t counts once. A sentence that is made of t alone has no χ∖t and is left out.

    No sum is formed by taking t's share away from the whole: late in training t holds nearly all
    of Z(χ), and the difference would be rounding noise. The embeddings of unlisted words are
    summed once per sentence; listed words are added pair by pair, all but t itself.

    Args:
        bags: the training sentences.
        words: the words t, each once.

    Raises:
        AttnscopeError: a word repeats in ``words``, or never stands beside another word.
    """

    def __init__(self, bags: Bags, words: Numbers) -> None:
        self.words = word_numbers(words)
        if len(np.unique(self.words)) < len(self.words):
            raise AttnscopeError(f"words = {self.words.tolist()}: expected each word once.")
        count = len(self.words)
        column = np.full(bags.vocabulary, -1)
        column[self.words] = np.arange(count)
        rows, ids = bags.sentences.numpy(), bags.words.numpy()
        listed = column[ids] >= 0
        self._listed = _counts(rows[listed], column[ids[listed]], (len(bags), count))
        self._unlisted = _counts(rows[~listed], ids[~listed], (len(bags), bags.vocabulary))
        pairs = self._listed.T.tocsr().tocoo()
        company = bags.lengths.numpy()[pairs.col] > pairs.data
        self._word, self._sentence = pairs.row[company], pairs.col[company]
        self._repeats = pairs.data[company]
        self.sizes = np.bincount(self._word, minlength=count)
        if not self.sizes.all():
            lonely = self.words[self.sizes == 0].tolist()
            raise AttnscopeError(
                f"words {lonely} stand beside no other word in any training sentence: expected "
                "words with a sentence around them."
            )
        self._around = _counts(rows, ids, (len(bags), bags.vocabulary))[self._sentence]
        owner = np.repeat(self.words[self._word], np.diff(self._around.indptr))
        self._around.data[self._around.indices == owner] = 0.0
        self._ends = np.concatenate([[0], np.cumsum(self.sizes)])

    def averages(self, scores: Numbers, embeddings: Numbers) -> PsiAverages:
        """Take the means at the scores ``(word,)`` and embeddings ``(word, dim)`` of all words."""
        factors = np.exp(float64(scores))
        weighted = factors[:, None] * float64(embeddings)
        inverse = 1 / (self._around @ factors)
        means = sparse.csr_array(
            (inverse / self.sizes[self._word], self._sentence, self._ends),
            shape=(len(self.words), self._listed.shape[0]),
        )
        others = means @ self._listed
        others.setdiag(0.0)
        context = means @ (self._unlisted @ weighted) + others @ weighted[self.words]
        share = self._mean(self._repeats * inverse) * factors[self.words]
        return PsiAverages(self._mean(inverse), context, 1 + share)

    def sides(
        self, scores: Numbers, embeddings: Numbers, score_speed: Numbers, embedding_speed: Numbers
    ) -> np.ndarray:
        """Return both sides of eqs (9) and (8) for each word t, shape ``(word, side)``.

        In this order: s + exp(s)⟨1/Z(χ∖t)⟩ and ½‖v - ⟨v̄(χ∖t)⟩‖², whose growth eq (9) says is
        equal; then ds/dt as it is, and as eq (8) has it, (v - ⟨v̄(χ∖t)⟩)ᵀ dv/dt / ⟨Z(χ)/Z(χ∖t)⟩.
        All arguments are of all words, the last two their derivatives by time.
        """
        means = self.averages(scores, embeddings)
        own, speed = float64(scores)[self.words], float64(score_speed)[self.words]
        distance = float64(embeddings)[self.words] - means.context
        push = float64(embedding_speed)[self.words]
        return np.stack(
            [
                own + np.exp(own) * means.inverse_z,
                (distance**2).sum(axis=1) / 2,
                speed,
                (distance * push).sum(axis=1) / means.ratio,
            ],
            axis=1,
        )

    def _mean(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self._word, values, minlength=len(self.words)) / self.sizes


def words_in_company(bags: Bags, least: int = 1) -> np.ndarray:
    """Return the words that stand in ``least`` sentences or more, and beside another in one."""
    rows, ids = bags.sentences.numpy(), bags.words.numpy()
    # A sentence may be one word said twice: what counts is whether another stands beside it.
    kinds = np.bincount(np.unique(rows * bags.vocabulary + ids) // bags.vocabulary)
    most = np.zeros(bags.vocabulary, dtype=np.int64)
    np.maximum.at(most, ids, kinds[rows])
    return np.flatnonzero((bags.occurrences.numpy() >= least) & (most > 1))


def neighbours(bags: Bags, words: np.ndarray) -> int:
    """Return how many times one of some words stands beside another, which is what Ψ_t costs."""
    listed = np.zeros(bags.vocabulary, dtype=bool)
    listed[words] = True
    pairs = np.unique(bags.sentences.numpy() * bags.vocabulary + bags.words.numpy())
    rows = pairs[listed[pairs % bags.vocabulary]] // bags.vocabulary
    return int((np.bincount(rows).astype(np.int64) ** 2).sum())


def psi_averages(scores: Numbers, embeddings: Numbers, bags: Bags, words: Numbers) -> PsiAverages:
    """Take the means over Ψ_t at one time; for many times keep a :class:`PsiSets`.

    Args:
        scores: s_w of all words, shape ``(word,)``.
        embeddings: v_w of all words, shape ``(word, dim)``.
        bags: the training sentences.
        words: the words t, in the order of the answer.
    """
    return PsiSets(bags, words).averages(scores, embeddings)


def effective_m(bags: Bags, words: Numbers) -> np.ndarray:
    """Words around t in a sentence of Ψ_t on average: the m of Corollary 1 on real text.

    The mean length of the training sentences that hold t, each counted once, less one (the
    released code of Lu 2021). On :class:`TopicWords` this is its ``m`` for every topic word.

    Raises:
        AttnscopeError: a word stands in no sentence.
    """
    words = word_numbers(words)
    pairs = np.unique(bags.words.numpy() * len(bags) + bags.sentences.numpy())
    word, sentence = pairs // len(bags), pairs % len(bags)
    total = np.bincount(word, bags.lengths.numpy()[sentence], minlength=bags.vocabulary)
    number = np.bincount(word, minlength=bags.vocabulary)[words]
    if not number.all():
        raise AttnscopeError(
            f"words {words[number == 0].tolist()} stand in no training sentence: expected words "
            "of the training sentences."
        )
    return np.asarray(total[words] / number - 1)


def _counts(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape).tocsr()
