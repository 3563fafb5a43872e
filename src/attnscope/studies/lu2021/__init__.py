"""Studies of Lu, Mao, Nayak, *On the Dynamics of Training Attention Models* (ICLR 2021)."""

from attnscope.studies.lu2021.capacity import Capacity
from attnscope.studies.lu2021.cnn import Cnn
from attnscope.studies.lu2021.query import Query
from attnscope.studies.lu2021.sen import Sen
from attnscope.studies.lu2021.sst import Sst
from attnscope.studies.lu2021.synergy import Synergy

__all__ = ["Capacity", "Cnn", "Query", "Sen", "Sst", "Synergy"]
