"""One run under four theories, smaller than quick."""

from __future__ import annotations

from attnscope.claims import examine_all
from attnscope.experiment import solve
from attnscope.studies.crossing import OneRun


def test_events_are_read_and_the_floor_holds() -> None:
    study = OneRun.at("quick", seeds=1, steps=30, length=12, held_out=8, batch=16)
    run = study.read(solve(study).tree)
    found = {each.key: each for each in examine_all(study.claims(), run)}
    assert found["floor"].verdict == "holds"
    assert found["floor"].control_fails
    assert found["onset-before-transition"].verdict == "undecided"  # nothing comes so early
    events = study.events(run)
    assert events.sizes == {"event": 5, "seed": 1}
    assert float(events[0, 0]) > 0
    (figure,) = study.figures(run)
    assert len(figure.panels) == 5
    assert len(study.tables(run)[0].rows) == 5
