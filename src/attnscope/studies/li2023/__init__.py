"""Studies of Li, Li, Risteski, *How Do Transformers Learn Topic Structure* (ICML 2023)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.li2023.attention import AttentionStudy
    from attnscope.studies.li2023.embedding import Embedding
    from attnscope.studies.li2023.multilayer import Multilayer
    from attnscope.studies.li2023.one_onset import OneOnset
    from attnscope.studies.li2023.onset import OnsetStudy
    from attnscope.studies.li2023.optimum import Optimum
    from attnscope.studies.li2023.pretrained import Pretrained
    from attnscope.studies.li2023.topic_documents import TopicDocumentsRun
    from attnscope.studies.li2023.two_stage import TwoStage
    from attnscope.studies.li2023.value import Value

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "attention": ("AttentionStudy",),
        "embedding": ("Embedding",),
        "multilayer": ("Multilayer",),
        "one_onset": ("OneOnset",),
        "onset": ("OnsetStudy",),
        "optimum": ("Optimum",),
        "pretrained": ("Pretrained",),
        "two_stage": ("TwoStage",),
        "value": ("Value",),
        "topic_documents": ("TopicDocumentsRun",),
    },
)
