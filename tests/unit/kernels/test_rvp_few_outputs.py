"""How many bytes rvp.few_outputs_s8 reads at once."""

from typing import Any

import pytest

from stages.backends.riscv.kernels.rvp.few_outputs import FewOutputs, load_bytes
from stages.ir.models.operators import build
from stages.ir.models.spec import OpModel
from tests.support.emitted import target_named
from tests.support.integer import integer_graph

SAME = {"kernel": (3, 3), "padding": "same"}


@pytest.mark.parametrize(
    ("target", "channels", "outputs", "options", "wanted"),
    [
        ("rv64-rvp", 36, 3, {}, 4),
        ("rv64-rvp", 32, 3, {}, 8),
        ("rv64-rvp", 36, 1, SAME, 4),
        ("rv64-rvp", 34, 3, {}, 8),  # pixels that are no whole lanes are gathered
        ("rv64-rvp", 36, 200, {}, 8),  # so many outputs that it is the products that count
        ("rv32-rvp", 36, 3, {}, 4),
    ],
)
def test_a_lane_is_read_where_pixels_are_whole_lanes_and_no_registers(
    target: str, channels: int, outputs: int, options: dict[str, Any], wanted: int
) -> None:
    spec = {"op": "conv2d", "shape": (12, 12, channels), "out_channels": outputs, **options}
    graph = integer_graph(build(OpModel.model_validate(spec)))
    view, machine = graph.view(graph.layers[0]), target_named(target)
    assert load_bytes(view, machine) == wanted
    runs = FewOutputs().pack_for(view, None, machine)["weights"]
    assert runs.shape[-1] == -(-channels * (3 if options else 1) // wanted) * wanted
