"""Words start to be learned as their counts say, but eq 15 is |O| times too fast (eq 15, A.2)."""

from attnscope.studies.snell2021.initial_derivative.study import InitialDerivative

__all__ = ["InitialDerivative"]
