"""Studies of Li, Li, Risteski, *How Do Transformers Learn Topic Structure* (ICML 2023)."""

from attnscope.studies.li2023.attention import Attention
from attnscope.studies.li2023.embedding import Embedding
from attnscope.studies.li2023.multilayer import Multilayer
from attnscope.studies.li2023.onset import Onset
from attnscope.studies.li2023.optimum import Optimum
from attnscope.studies.li2023.pretrained import Pretrained
from attnscope.studies.li2023.two_stage import TwoStage
from attnscope.studies.li2023.value import Value

__all__ = [
    "Attention",
    "Embedding",
    "Multilayer",
    "Onset",
    "Optimum",
    "Pretrained",
    "TwoStage",
    "Value",
]
