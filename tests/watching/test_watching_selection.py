"""What was asked for becomes readings on schedules, or a sentence."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attnscope.engines.observe import Observable
from attnscope.errors import AttnscopeError
from attnscope.watching.moment import Moment, Reading
from attnscope.watching.readings.offer import NO_ATTENTION, Evaluation, Offer
from attnscope.watching.selection import select
from attnscope.watching.track import Every


def _offer(name: str, usual: bool = True, lacks: str = "") -> Offer:
    return Offer(Reading(name, lambda moment: torch.zeros(())), usual, lacks)


OFFERS = {
    offer.reading.name: offer
    for offer in (
        _offer("entropy"),
        _offer("attention", usual=False),
        _offer("saliency", lacks="right answers: targets=..."),
        _offer("mass_first", lacks=NO_ATTENTION),
    )
}


def _names(record: object, every: int = 100) -> list[tuple[str, int, list[str]]]:
    plan = select(record, every, OFFERS)  # type: ignore[arg-type]
    return [(dim, steps, [reading.name for reading in part]) for dim, steps, part in plan]


def test_schedules() -> None:
    loss = ("every_1", 1, ["loss"])
    assert _names(None) == [("step", 100, ["entropy"]), loss]
    assert _names("entropy") == [("step", 100, ["entropy"]), loss]
    assert _names(["entropy", Every(1, "attention")]) == [
        ("step", 100, ["entropy"]),
        ("every_1", 1, ["loss", "attention"]),
    ]
    assert _names([Every(5, "attention", "loss")]) == [("every_5", 5, ["attention", "loss"])]
    assert _names(["entropy"], every=1) == [("step", 1, ["loss", "entropy"])]
    assert _names([Every(100, "attention"), "entropy"]) == [
        ("step", 100, ["attention", "entropy"]),
        loss,
    ]


def test_functions_are_named_by_themselves_or_by_what_they_look_at() -> None:
    def largest(model: nn.Linear) -> float:
        return model.weight.max().item()

    model = nn.Linear(2, 2)
    observable = Observable("bias", lambda m: m.bias, ("unit",), "volts", "a bias")
    record = [largest, lambda m: m.weight.norm(), observable]
    ((_, _, readings), _) = select(record, 100, OFFERS)  # type: ignore[arg-type]
    assert [reading.name for reading in readings] == ["largest", "weight.norm", "bias"]
    moment = Moment(model, 1, 0.0, (), lambda: Evaluation(()))
    values = [reading.read(moment) for reading in readings]
    assert values[0] == model.weight.max()
    assert values[1] == model.weight.norm()
    assert values[2] is model.bias
    assert (readings[2].dims, readings[2].unit) == (("unit",), "volts")


def test_a_function_may_have_nothing_to_read_before_the_first_step() -> None:
    ((_, _, (reading,)), _) = select([lambda m: m.weight.grad.norm()], 100, OFFERS)
    model = nn.Linear(2, 2)
    assert reading.read(Moment(model, 0, 0.0, (), lambda: Evaluation(()))) is None
    with pytest.raises(AttributeError):
        reading.read(Moment(model, 1, 0.0, (), lambda: Evaluation(())))


def test_a_function_may_run_the_model_without_leaving_a_trace() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2))
    ((_, _, (reading,)), _) = select([lambda m: m(torch.ones(3, 2)).sum()], 100, OFFERS)
    before = torch.get_rng_state()
    reading.read(Moment(model, 1, 0.0, (), lambda: Evaluation(())))
    assert torch.equal(torch.get_rng_state(), before)
    assert model[1].num_batches_tracked == 0
    assert model.training


@pytest.mark.parametrize(
    ("record", "every", "sentence"),
    [
        (["entropi"], 100, "no reading 'entropi'. Did you mean 'entropy'?"),
        (["saliency"], 100, "'saliency' needs right answers: targets=..."),
        (["entropy", Every(5, "entropy")], 100, "'entropy' is there twice"),
        ([3], 100, "record: 3 is a int: expected a name"),
        (None, 0, "every = 0: expected 1 step or more"),
        ([Reading("a/b", lambda moment: None)], 100, "'a/b' cannot be the name"),
    ],
)
def test_sentences(record: object, every: int, sentence: str) -> None:
    with pytest.raises(AttnscopeError) as caught:
        _names(record, every)
    assert sentence in str(caught.value)


def test_a_model_without_attention_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="mass_first cannot be recorded: no attention was found"):
        assert _names(["mass_first", "entropy"])[0] == ("step", 100, ["entropy"])
