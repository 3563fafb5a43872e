import numpy as np
import pytest
from _agreement_tree import RUNS, STEPS, make
from scipy.stats import kendalltau

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.cells import Cells
from attnscope.studies.snell2021.agreement.evidence import Evidence, concentration, knowledge
from attnscope.trajectory import Readings

NORMAL_A, NORMAL_B, UNIFORM, FROZEN, PROXY = 0, 1, 4, 5, 6


@pytest.fixture(scope="module", params=["labelled", "parallel"])
def tree(request):
    return make(request.param, sentences=12, salient=5).tree


def agreement_table(tree, *args, **choices):
    return Evidence(Readings(tree)).table(*args, **choices)


class Plain:
    """The definitions, row by row, with loops."""

    def __init__(self, tree, split="dev"):
        self.seen = tree["observables"]
        self.split = split
        length = tree[f"data/length_{split}"].to_numpy()
        self.bounds = list(zip(np.cumsum(length) - length, np.cumsum(length), strict=True))

    def rows(self, name, run, step):
        flat = self.seen[f"{name}_{self.split}"].to_numpy()[run, step]
        return [flat[a:b] for a, b in self.bounds if b <= len(flat)]

    def agreement(self, u, v):
        held = []
        for one, other in zip(u, v, strict=False):
            above = sum(x > other[np.argmax(one)] for x in other)
            held.append(above < 0.05 * len(one))
        return 100 * np.mean(held)

    def tau(self, u, v):
        found = [kendalltau(a, b).statistic for a, b in zip(u, v, strict=False)]
        return 100 * np.nanmean(found)


def expected(tree, by="agreement", turned=False):
    plain = Plain(tree)
    best = int(np.argmax(tree["observables/accuracy_dev"].to_numpy()[NORMAL_A]))
    px = int(np.argmin(tree["observables/loss_dev"].to_numpy()[PROXY]))
    measure = getattr(plain, by)
    alpha, delta = (plain.rows(name, NORMAL_A, best) for name in ("alpha", "delta"))
    proxy = plain.rows("lexical", PROXY, px)

    def largest(pairs):
        curve = [measure(u, v) for u, v in pairs]
        return max(curve), int(STEPS[int(np.argmax(curve))])

    steps = range(len(STEPS))
    uniform = [plain.rows("lexical", UNIFORM, k) for k in steps]
    return {
        "alpha_uf": largest((alpha, uniform[k]) for k in steps),
        "uf_px": largest((proxy, uniform[k]) if turned else (uniform[k], proxy) for k in steps),
        "delta_uf": largest(([-d for d in delta] if turned else delta, uniform[k]) for k in steps),
        "alpha_beta": largest((alpha, plain.rows("lexical", NORMAL_B, k)) for k in steps),
        "alpha_fr": largest((alpha, plain.rows("alpha", FROZEN, k)) for k in steps),
    }


@pytest.mark.parametrize("convention", ["paper", "released"])
def test_each_symbol_comes_from_its_run(tree, convention):
    found = agreement_table(tree, convention=convention)
    for name, (value, step) in expected(tree, turned=convention == "released").items():
        assert found[name].value == pytest.approx(value, abs=1e-9), name
        assert found[name].step == step, name


def test_rank_correlation_is_that_of_scipy(tree):
    found = agreement_table(tree, by="tau")
    for name, (value, _) in expected(tree, by="tau").items():
        assert found[name].value == pytest.approx(value, abs=1e-9), name
        assert found[name].baseline == 0.0


def test_the_order_of_arguments_matters():
    tree = make("labelled", sentences=12, salient=5).tree
    paper, released = (agreement_table(tree, convention=c) for c in ("paper", "released"))
    assert paper["uf_px"].value != released["uf_px"].value
    assert paper["delta_uf"].value > released["delta_uf"].value
    assert paper["alpha_uf"] == released["alpha_uf"]


def test_xi_is_the_performance_where_other_runs_agree_better(tree):
    plain, seen = Plain(tree), tree["observables"]
    best = int(np.argmax(seen["accuracy_dev"].to_numpy()[NORMAL_A]))
    alpha = plain.rows("alpha", NORMAL_A, best)
    others = [i for i, (case, _) in enumerate(RUNS) if case == "normal" and i != NORMAL_A]
    curve = np.mean(
        [
            [plain.agreement(alpha, plain.rows("alpha", run, k)) for k in range(len(STEPS))]
            for run in others
        ],
        axis=0,
    )
    performance = 100 * seen["accuracy_dev"].to_numpy()[others].mean(axis=0)
    for entry in agreement_table(tree).values():
        above = np.flatnonzero(curve > entry.value)
        assert entry.xi.reached == bool(len(above))
        xi = performance[above[0]] if len(above) else performance[-1]
        assert entry.xi.value == pytest.approx(xi, abs=1e-9)


def test_bleu_puts_translation_into_context():
    tree = make("parallel", sentences=12, salient=5).tree
    by_bleu, by_accuracy = (agreement_table(tree, performance=p) for p in ("bleu", "accuracy"))
    assert by_bleu["alpha_uf"].value == by_accuracy["alpha_uf"].value
    assert by_bleu["alpha_uf"].xi.value <= 40 < by_accuracy["alpha_uf"].xi.value


def test_saliency_is_of_the_first_sentences_alone(tree):
    found = agreement_table(tree)
    rows = int((tree["data/sentence_dev"].to_numpy() < 5).sum())
    assert found["delta_uf"].rows == rows < found["alpha_uf"].rows == len(tree["data/length_dev"])


def test_curves_are_of_every_run_with_attention(tree):
    seen = Evidence(Readings(tree))
    found = seen.curves
    assert list(found["run"].to_numpy()) == ["A", "B", "C", "D", "frozen", "uniform"]
    first = found.sel(run="A")
    assert float(first["to_first"][seen.best]) == 100.0
    assert first["concentration"][-1] > first["concentration"][0]
    assert float(found["to_first"].sel(run="frozen").max()) == seen.table()["alpha_fr"].value


def test_runs_go_by_names(tree):
    seen = Evidence(Readings(tree))
    assert [(name, seen.seed(name)) for name in seen.names] == [
        *zip("ABCD", (20, 13, 14, 15), strict=True),
        ("uniform", 12),
        ("frozen", 11),
        ("proxy", 10),
    ]
    assert seen.normal == ["A", "B", "C", "D"]


def test_concentration_is_0_when_uniform_and_1_at_a_point():
    cells = Cells([4, 2, 1])
    uniform = cells.padded([0.25] * 4 + [0.5] * 2 + [1.0])
    point = cells.padded([0, 1, 0, 0, 1, 0, 1])
    assert concentration(uniform, cells) == pytest.approx(0.0, abs=1e-12)
    assert concentration(point, cells) == pytest.approx(1.0, abs=1e-12)


def test_knowledge_is_that_of_the_best_position():
    cells = Cells([2, 3])
    odds = cells.padded([0.0, np.log(3.0), -1.0, 0.0, -2.0])
    assert knowledge(odds, "labelled") == pytest.approx((0.75 + 0.5) / 2)
    assert knowledge(cells.padded(np.log([0.1, 0.2, 0.3, 0.6, 0.1])), "parallel") == (
        pytest.approx(0.4)
    )


def test_bad_choices_are_refused(tree):
    with pytest.raises(AttnscopeError, match="split = 'test'"):
        agreement_table(tree, "test")
    with pytest.raises(AttnscopeError, match="by = 'rank'"):
        agreement_table(tree, by="rank")
