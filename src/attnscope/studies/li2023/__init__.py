"""Studies of Li, Li, Risteski, *How Do Transformers Learn Topic Structure* (ICML 2023)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.li2023.attention import AttentionStudy as AttentionStudy
    from attnscope.studies.li2023.embedding import Embedding as Embedding
    from attnscope.studies.li2023.multilayer import Multilayer as Multilayer
    from attnscope.studies.li2023.onset import OnsetStudy as OnsetStudy
    from attnscope.studies.li2023.optimum import Optimum as Optimum
    from attnscope.studies.li2023.pretrained import Pretrained as Pretrained
    from attnscope.studies.li2023.topic_documents import TopicDocumentsRun as TopicDocumentsRun
    from attnscope.studies.li2023.two_stage import TwoStage as TwoStage
    from attnscope.studies.li2023.value import Value as Value

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "attention": ("AttentionStudy",),
        "embedding": ("Embedding",),
        "multilayer": ("Multilayer",),
        "onset": ("OnsetStudy",),
        "optimum": ("Optimum",),
        "pretrained": ("Pretrained",),
        "two_stage": ("TwoStage",),
        "value": ("Value",),
        "topic_documents": ("TopicDocumentsRun",),
    },
)
