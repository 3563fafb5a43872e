"""Two runs beside each other: the first step at which they differ, reading by reading.

::

    found = attnscope.compare("runs/a", "runs/b")
    print(found.sentence)
    found.write_report("runs/a-vs-b")
"""

from attnscope.comparison.compare import Comparison, compare
from attnscope.comparison.differences import Difference

__all__ = ["Comparison", "Difference", "compare"]
