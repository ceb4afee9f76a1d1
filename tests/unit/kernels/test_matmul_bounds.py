"""How deep products of matrices may be: beyond, sums no longer fit what kernels keep them in."""

import pytest

from stages.kernels import registry
from stages.models.operators import build
from stages.models.spec import OpModel
from tests.support.emitted import target_named
from tests.support.integer import integer_graph

_FAMILIES = {
    "rv64-rvp": "rvp",
    "cortex-m4": "arm_dsp",
    "cortex-m55": "mve",
    "aarch64": "neon",
    "aarch64-dotprod": "neon_dotprod",
}


def _why_not(target_name: str, kernel: str, depth: int, dtype: str = "int8") -> str:
    options = {"op": "batch_matmul", "shape": (1, depth), "other_shape": (depth, 1), "dtype": dtype}
    graph = integer_graph(build(OpModel.model_validate(options)))
    target = target_named(target_name)
    return registry.kernels(target.kernels)[kernel].why_not(graph.view(graph.layers[0]), target)


@pytest.mark.parametrize("target", _FAMILIES)
def test_twice_a_sum_of_families_has_32_bits(target: str) -> None:
    """Rounding doubles it: 16512 products of 255 * 255 stay below 2^30."""
    kernel = f"{_FAMILIES[target]}.matmul_s8"
    assert _why_not(target, kernel, 16512) == ""
    assert _why_not(target, kernel, 16513) == "a sum has 16513 products; this kernel takes 16512"


def test_a_sum_of_int16_has_48_bits() -> None:
    assert _why_not("cortex-m4", "generic.batch_matmul16", 131071, "int16") == ""
    reason = _why_not("cortex-m4", "generic.batch_matmul16", 131072, "int16")
    assert reason == "a sum has 131072 products; 48 bits hold 131071"
