"""A head of products against plain attention, and what a flow of it conserves."""

from __future__ import annotations

import pytest
import torch

from attnscope.engines import Flow
from attnscope.models.factored_head import FactoredHead, attend


@pytest.mark.parametrize("diagonal", [True, False])
def test_the_head_is_plain_attention(diagonal: bool) -> None:
    head = FactoredHead(4, 0.7, diagonal, torch.Generator().manual_seed(0))
    tokens = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1)).double()
    left, right = head.left.detach(), head.right.detach()
    if diagonal:
        left, right = torch.diag_embed(left), torch.diag_embed(right)
    scores, values = left @ right.transpose(-1, -2)
    for row, found in zip(tokens, head(tokens), strict=True):
        weights = torch.exp(row @ scores @ row.T)
        slow = (weights / weights.sum(dim=1, keepdim=True)) @ row @ values
        torch.testing.assert_close(found, slow)
    whole = torch.stack([scores, values])
    torch.testing.assert_close(head.singular_values(), torch.linalg.svdvals(whole))
    torch.testing.assert_close(head.diagonals(), torch.diagonal(whole, dim1=-2, dim2=-1))


@pytest.mark.parametrize("diagonal", [True, False])
def test_a_flow_conserves_what_it_should(diagonal: bool) -> None:
    head = FactoredHead(3, 0.5, diagonal, torch.Generator().manual_seed(0))
    tokens = torch.randn(20, 4, 3, generator=torch.Generator().manual_seed(1)).double()
    targets = attend(tokens, torch.tensor([1.0, 0, 0]).double(), torch.tensor([0, 1.0, 0]).double())
    before, start = head.conserved().clone(), head.products().clone()
    Flow(rtol=1e-9, atol=1e-9).run(
        head, lambda m: ((m(tokens) - targets) ** 2).mean(), time=5.0, record=[]
    )
    assert (head.products() - start).abs().max() > 0.05
    torch.testing.assert_close(head.conserved(), before, rtol=0, atol=1e-7)
