"""Studies of Lu, Mao, Nayak, *On the Dynamics of Training Attention Models* (ICLR 2021)."""

from attnscope.studies.lu2021.sen import Sen

__all__ = ["Sen"]
