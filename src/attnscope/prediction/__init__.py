"""What attention will look at in a set of texts, said before anything is trained.

    import attnscope

    said = attnscope.predict("mine.csv")     # labelled text, parallel text or plain text
    print(said.verdict)
    said.write_report("prediction")          # one HTML file

A prediction is a title, a verdict and :class:`~attnscope.report.section.Section` values. **To add a
section**, write a module in this room with a function ``NAME_section(asked)`` that takes what was
asked (:class:`~attnscope.prediction.asked.Asked`: the data, the words to leave out, a listener for
progress) and returns a ``Section``, or ``None`` where it has nothing to say; put the function into
the tuple of its kind of data in :mod:`attnscope.prediction.contents`, at the place where it is to
be read. The computation itself is a pure function in :mod:`attnscope.probes` or
:mod:`attnscope.theory`; a section puts it into words. Terminal, report and lab show every section
alike, so nothing else has to be written.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.prediction.answer import predict
    from attnscope.prediction.asked import Asked
    from attnscope.prediction.prediction import Prediction
    from attnscope.report.section import Section, ShadedText

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"asked": ("Asked",), "answer": ("predict",), "prediction": ("Prediction",)},
)
