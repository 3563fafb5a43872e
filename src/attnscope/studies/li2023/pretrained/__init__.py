"""Topics in language models trained on real text: attention and embeddings (Tables 1, 2, 5)."""

from attnscope.studies.li2023.pretrained.study import Pretrained as Pretrained
