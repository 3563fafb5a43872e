"""Attention to the same word, the same topic and other topics, by optimizer (Tables 3 and 4).

The paper gives optimizers and learning rates, not the start of the weights. Here every entry of
W^K, W^Q and W^V starts with the standard deviation of a linear layer's default, 1/√(3d), which is
what the released code uses for W^V; biases start at 0. Documents are never seen twice, where the
released code goes 20 times over 10,000: as many steps.
"""

from attnscope.studies.li2023.attention.study import AttentionStudy

__all__ = ["AttentionStudy"]
