"""Song, Han, Zhang, Ding, Hong, *Unraveling the Gradient Descent Dynamics of Transformers*.

NeurIPS 2024. The poster's Theorem 1 as a certificate that can be computed for a layer, the linear
problem of W^V alone, and where the gradient of W^Q gets lost.
"""

from attnscope.theory.song2024.along import Along, along, descent_path_bound
from attnscope.theory.song2024.certificate import (
    Certificate,
    certify,
    output_strength,
    pl_constant,
    smallest_singular_value,
)
from attnscope.theory.song2024.features import (
    LayerState,
    feature_shift,
    features,
    state_from_arrays,
)
from attnscope.theory.song2024.gradient_anatomy import (
    gradient_norms,
    jacobian_norm,
    saturated_share,
)
from attnscope.theory.song2024.layer import layer_state
from attnscope.theory.song2024.tangent import fastest_rate
from attnscope.theory.song2024.value_only import ValueOnly, value_only

__all__ = [
    "Along",
    "Certificate",
    "LayerState",
    "ValueOnly",
    "along",
    "certify",
    "descent_path_bound",
    "fastest_rate",
    "feature_shift",
    "features",
    "gradient_norms",
    "jacobian_norm",
    "layer_state",
    "output_strength",
    "pl_constant",
    "saturated_share",
    "smallest_singular_value",
    "state_from_arrays",
    "value_only",
]
