"""Studies of Lu, Mao, Nayak, *On the Dynamics of Training Attention Models* (ICLR 2021)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.lu2021.capacity import Capacity
    from attnscope.studies.lu2021.cnn import Cnn
    from attnscope.studies.lu2021.query import Query
    from attnscope.studies.lu2021.sen import Sen
    from attnscope.studies.lu2021.sst import Sst
    from attnscope.studies.lu2021.synergy import Synergy
    from attnscope.studies.lu2021.topic_words import TopicWordsRun

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "capacity": ("Capacity",),
        "cnn": ("Cnn",),
        "query": ("Query",),
        "sen": ("Sen",),
        "sst": ("Sst",),
        "synergy": ("Synergy",),
        "topic_words": ("TopicWordsRun",),
    },
)
