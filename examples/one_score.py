"""One attention score under cross-entropy: s + exp(s)/m grows as fast as time."""

from dataclasses import dataclass

import torch

from attnscope import Claim, Flow, Observable, Problem, Study, below, curves, ends


@dataclass(frozen=True)
class OneScore(Study):
    """Attention has to find one word among m others, and its score is all that learns."""

    training: Flow = Flow(lr=0.1, epochs=200)
    cases = ("m = 5", "m = 20")

    def build(self, case, seed):
        m, model = int(case[4:]), torch.nn.ParameterDict({"s": torch.tensor(0.1 * seed)})
        grown = Observable("grown", lambda model: model.s + model.s.exp() / m)
        return Problem(model, lambda model: torch.log(model.s.exp() + m) - model.s, [grown])

    def theory(self, run):
        return {"grown": run.grown.sel(step=0) + run.time}

    def claims(self):
        def gap(run, pace):
            return abs(run.grown - run.grown.sel(step=0) - pace * run.time).max("step")

        growth = "{case}: s + exp(s)/m grows by the time that passes."
        return [Claim("growth", growth, gap, 1, below(0.01), (2, "twice as fast"), per=self.cases)]

    def figures(self, run):
        return [curves(run, "grown", theory="grown")]

    def tables(self, run):
        return [ends(run, "grown")]
