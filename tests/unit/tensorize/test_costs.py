"""The table of costs: what of it counts for a layer, and in which order."""

import json
from pathlib import Path
from typing import Any

import pytest

from stages.base import StageError
from stages.graph import LayerView
from stages.kernels.digest import kernel_digest
from stages.tensorize.costs import CostTable, Price, quantities, signature, variant
from tests.support.emitted import target_named
from tests.support.kernels.mini import MiniGemm, MiniParams, PlainGemm, mini_graph

KERNEL, HOST = MiniGemm(), target_named("host")
DIGEST = kernel_digest(KERNEL)


def view(**options: int) -> LayerView:
    graph = mini_graph(**options)
    return graph.view(graph.layers[0])


def table(**changes: Any) -> dict[str, Any]:
    layer = {"work": {"products": 1}, "mini.gemm rows=4": [77, 50]}
    fits = {"mini.gemm rows=4": {"layers": 9, "error": 0.1, "factors": {"products": 2.5, "call": 30.0}}}
    content = {"format": 1, "kernels": {"mini.gemm": DIGEST}, "fits": fits, "layers": {signature(view()): layer}}
    return {**content, **changes}


def written(folder: Path, content: dict[str, Any]) -> CostTable:
    (folder / "host.json").write_text(json.dumps(content))
    return CostTable.read(folder / "host.json")


def test_measured_goes_before_fitted_goes_before_estimated(tmp_path: Path) -> None:
    costs = written(tmp_path, table())
    assert costs.price(KERNEL, view(), MiniParams(), HOST) == Price(77, "measured")
    other = view(depth=16)
    assert costs.price(KERNEL, other, MiniParams(), HOST) == Price(2.5 * 8 * 16 * 6 + 30, "fitted")
    assert costs.price(KERNEL, other, MiniParams(rows=2), HOST) == Price(2 * 8 * 16 * 6, "estimated")
    assert CostTable().price(KERNEL, view(), MiniParams(), HOST).source == "estimated"


def test_what_was_measured_with_another_version_of_the_kernel_does_not_count(tmp_path: Path) -> None:
    costs = written(tmp_path, table(kernels={"mini.gemm": "0" * 16}))
    assert not costs.knows(KERNEL)
    assert costs.price(KERNEL, view(), MiniParams(), HOST).source == "estimated"
    assert costs.price(KERNEL, view(depth=16), MiniParams(), HOST).source == "estimated"


def test_a_fit_to_the_estimate_is_not_used_where_the_kernel_states_none(tmp_path: Path) -> None:
    class Silent(MiniGemm):
        def cost(self, view: LayerView, params: Any, target: Any) -> float:
            raise LookupError

    fits = {"mini.gemm rows=4": {"layers": 1, "error": 0.0, "factors": {"estimate": 2.0}}}
    costs = written(tmp_path, table(fits=fits, kernels={"mini.gemm": kernel_digest(Silent())}))
    assert costs.price(Silent(), view(depth=16), MiniParams(), HOST) == Price()


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}'])
def test_a_damaged_table_is_an_error_that_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "host.json").write_text(text)
    with pytest.raises(StageError, match=r"host\.json.*\nwrite it again: doit calibrate target=host"):
        CostTable.read(tmp_path / "host.json")


def test_the_signature_is_about_shape_and_not_about_data() -> None:
    first, again = mini_graph(seed=0), mini_graph(seed=1)
    renamed = first.layers[0].model_copy(update={"name": "another"})
    assert signature(first.view(renamed)) == signature(again.view(again.layers[0]))
    assert signature(view()) != signature(view(depth=16))
    assert signature(view()) == "fully_connected int8[8x12] -> int8[8x6] rounding=single weights=int8"


def test_a_variant_is_a_kernel_with_its_parameters() -> None:
    assert variant(KERNEL, MiniParams(rows=2)) == "mini.gemm rows=2"
    assert variant(KERNEL, MiniParams()) != variant(PlainGemm(), MiniParams())


def test_quantities_of_a_matrix_product() -> None:
    expected = {"products": 8 * 12 * 6, "outputs": 8 * 6, "inputs": 8 * 12, "rows": 8, "call": 1, "estimate": 5}
    assert quantities(view(), 5) == expected
    assert "estimate" not in quantities(view(), None)
