"""Topics in the heads of several layers, norms over training, turning of W^V (Fig 5).

The paper looks at 4 layers of 4 heads on Wikipedia. Here they read documents of the topic model, so
that topics are known, on sizes that a laptop trains in minutes: 10 topics of 5 words, documents of
40 to 50 positions, keys and queries of length 16.
"""

from attnscope.studies.li2023.multilayer.study import Multilayer

__all__ = ["Multilayer"]
