"""Count the gradients of a flow along ReLU kinks, and measure its errors: Attn-TL of Lu 2021.

    python benchmarks/kinks.py

5,000 epochs at 0.1, the paper's setting. Errors are the largest of any topic word's score at 101
times, against the same flow with steps of 0.01 at kinks.
"""

from __future__ import annotations

import time

import numpy as np
import torch

import lu2021
from attnscope.engines import Descent, Flow, Memory, Solution


def run(engine: Flow | Descent) -> tuple[Solution, np.ndarray, float]:
    """Return how it ended, the scores, and the processor time."""
    here, sink = lu2021.case("TL"), Memory()
    began = time.process_time()
    record = lu2021.record(101)
    solution = engine.run(here.model(), here.objective, time=500.0, record=record, sink=sink)
    return solution, sink.arrays[0]["score"], time.process_time() - began


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    _, exact, _ = run(Flow(lr=0.01))
    engines = {f"Flow(lr={lr})": Flow(lr=lr) for lr in (0.05, 0.1, 0.25, 0.5)}
    for name, engine in {"Descent(lr=0.1)": Descent(lr=0.1), **engines}.items():
        solution, scores, seconds = run(engine)
        error = np.abs(scores - exact).max()
        print(
            f"{name:16} {solution.evaluations:5,} gradients, {solution.plain_steps:5,} steps at "
            f"kinks, error {error:.4f}, {seconds:.2f} s"
        )


if __name__ == "__main__":
    main()
