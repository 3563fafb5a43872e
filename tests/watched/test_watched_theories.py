"""A model of one's own under several theories: their readings on one axis of its report."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from attnscope.catalogue import of_tree
from attnscope.trajectory import Readings, open_run
from attnscope.watched.theories import curves_of
from attnscope.watching import THEORIES, watch


class Own(nn.Module):
    """Two causal layers of two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 8)
        self.layers = nn.ModuleList(nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))
        self.readout = nn.Linear(8, 9)

    def forward(self, ids: Tensor) -> Tensor:
        x, mask = self.words(ids), nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.layers:
            x = x + layer(x, x, x, attn_mask=mask, need_weights=False)[0]
        found: Tensor = self.readout(x)
        return found


@pytest.mark.parametrize("more", [(), ("induction",)])
def test_theories_lie_on_one_axis_of_the_report(tmp_path: Path, more: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    model, ids = Own(), torch.arange(24).reshape(3, 8) % 9
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    with watch(model, tmp_path / "run", [*THEORIES, *more], every=1, probe=ids) as scope:
        for _ in range(12):
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scope.step(loss)
    tree = open_run(tmp_path / "run")
    assert curves_of(tree).keys() == {*THEORIES, *more}
    study = of_tree(tree)
    run = Readings(tree)
    figure = next(each for each in study.figures(run) if each.name == "theories")
    assert len(figure.panels) == 4 + len(more)
    table = next(each for each in study.tables(run) if each.name == "theories")
    assert all(0 < row[0] <= 12 for row in table.rows)
    # A report without the readings that have to be asked for is as it was.
    with watch(Own(), tmp_path / "usual", ["entropy", "mass_previous"], probe=ids) as scope:
        scope.step(1.0)
    usual = open_run(tmp_path / "usual")
    assert not any(each.name == "theories" for each in study.figures(Readings(usual)))
