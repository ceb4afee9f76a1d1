"""The table of costs: what of it counts for a layer, and in which order."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stages.base import StageError
from stages.graph import LayerView
from stages.kernels.digest import kernel_digest
from stages.models.operators import build
from stages.models.spec import OpModel
from stages.tensorize.costs import CostTable, Price, kind_of, least_per_product, of_kind, quantities, signature, variant
from tests.support.emitted import target_named
from tests.support.integer import integer_graph
from tests.support.kernels.mini import MiniGemm, MiniParams, PlainGemm, mini_graph

KERNEL, HOST = MiniGemm(), target_named("host")
DIGEST = kernel_digest(KERNEL)


def view(**options: int) -> LayerView:
    graph = mini_graph(**options)
    return graph.view(graph.layers[0])


def table(**changes: Any) -> dict[str, Any]:
    layer = {"work": {"products": 1}, "mini.gemm rows=4": [77, 50]}
    fits = {"mini.gemm rows=4": {"layers": 9, "error": 0.1, "factors": {"products": 2.5, "call": 30.0}}}
    content = {"format": 2, "kernels": {"mini.gemm": DIGEST}, "fits": fits, "layers": {signature(view()): layer}}
    return {**content, **changes}


def written(folder: Path, content: dict[str, Any]) -> CostTable:
    (folder / "host.json").write_text(json.dumps(content))
    return CostTable.read(folder / "host.json")


def test_measured_goes_before_fitted_goes_before_estimated(tmp_path: Path) -> None:
    costs = replace(written(tmp_path, table()), nearby=None)
    assert costs.price(KERNEL, view(), MiniParams(), HOST) == Price(77, "measured")
    other = view(depth=16)
    assert costs.price(KERNEL, other, MiniParams(), HOST) == Price(2.5 * 8 * 16 * 6 + 30, "fitted")
    assert costs.price(KERNEL, other, MiniParams(rows=2), HOST) == Price(2 * 8 * 16 * 6, "estimated")
    assert CostTable().price(KERNEL, view(), MiniParams(), HOST).source == "estimated"


def test_a_model_is_corrected_by_layers_like_the_one_in_question(tmp_path: Path) -> None:
    """The measured layer took 77 where the model says 32.5."""
    costs = written(tmp_path, table())
    assert costs.nearby is not None
    other = view(depth=16)
    near = costs.nearby.factor("mini.gemm rows=4", signature(other))
    assert 1.5 < near < 77 / 32.5
    price = costs.price(KERNEL, other, MiniParams(), HOST)
    assert price == Price(round((2.5 * 8 * 16 * 6 + 30) * near), "fitted")


def test_what_was_measured_with_another_version_of_the_kernel_does_not_count(tmp_path: Path) -> None:
    costs = written(tmp_path, table(kernels={"mini.gemm": "0" * 16}))
    assert not costs.knows(KERNEL)
    assert costs.price(KERNEL, view(), MiniParams(), HOST).source == "estimated"
    assert costs.price(KERNEL, view(depth=16), MiniParams(), HOST).source == "estimated"


def test_the_least_for_a_product_is_by_type_and_of_these_kernels(tmp_path: Path) -> None:
    rows = {
        "conv2d int8[1x8] -> int8[1x8]": {"work": {"products": 100}, "mini.gemm rows=4": [50, None], "old.one": [1, 1]},
        "conv2d int8[1x9] -> int8[1x9]": {"work": {"products": 100}, "mini.gemm rows=2": [40, None]},
        "conv2d int16[1x8] -> int16[1x8]": {"work": {"products": 100}, "mini.gemm rows=4": [90, None]},
        "add int8[1x8] int8[1x8] -> int8[1x8]": {"work": {"products": 0}, "mini.gemm rows=4": [9, None]},
        "mean int8[1x8] -> int8[1x1]": {"work": {"products": 8}, "old.one": [1, None]},
    }
    written(tmp_path, table(layers=rows))
    known = {KERNEL.name: KERNEL}
    found = least_per_product(tmp_path / "host.json", known)
    assert found == {"conv2d of int8": 0.4, "conv2d of int16": 0.9}
    written(tmp_path, table(layers=rows, kernels={"mini.gemm": "0" * 16}))
    assert least_per_product(tmp_path / "host.json", known) == {}


def test_a_fit_to_the_estimate_is_not_used_where_the_kernel_states_none(tmp_path: Path) -> None:
    class Silent(MiniGemm):
        def cost(self, view: LayerView, params: Any, target: Any) -> float:
            raise LookupError

    fits = {"mini.gemm rows=4": {"layers": 1, "error": 0.0, "factors": {"estimate": 2.0}}}
    costs = written(tmp_path, table(fits=fits, kernels={"mini.gemm": kernel_digest(Silent())}))
    assert costs.price(Silent(), view(depth=16), MiniParams(), HOST) == Price()


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 3}', "[" * 100_000])
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
    expected = {"products": 8 * 12 * 6, "outputs": 8 * 6, "inputs": 8 * 12, "rows": 8, "channels": 6, "call": 1}
    assert quantities(view(), 5) == {**expected, "strips": 0, "taps": 0, "estimate": 5}
    assert "estimate" not in quantities(view(), None)


@pytest.mark.parametrize(
    ("operator", "strips", "taps"),
    [
        # The four windows in the corners of a 4x4 image have four taps in it, eight at its edges six, four all nine.
        ({"op": "conv2d", "shape": (4, 4, 5), "out_channels": 7, "kernel": (3, 3)}, 10 * 4, (16 + 48 + 36) * 5),
        ({"op": "depthwise_conv2d", "shape": (4, 4, 5), "kernel": (3, 3)}, 10 * 4, (16 + 48 + 36) * 5),
        ({"op": "max_pool2d", "shape": (4, 4, 5), "kernel": (2, 2), "stride": (2, 2)}, 4 * 2, 4 * 4 * 5),
        ({"op": "avg_pool2d", "shape": (1, 2, 5), "kernel": (3, 3), "batch": 2}, 2 * 2, 2 * 4 * 5),
        ({"op": "conv2d", "shape": (4, 4, 5), "out_channels": 7}, 0, 0),
        ({"op": "conv2d", "shape": (4, 4, 5), "out_channels": 7, "stride": (2, 2)}, 2 * 2, 2 * 2 * 5),
        # Taps two apart: of a row of five, windows have 2, 2, 3, 2, 2; and as many down the columns.
        ({"op": "conv2d", "shape": (5, 5, 1), "out_channels": 3, "kernel": (3, 3), "dilation": (2, 2)}, 11 * 5, 121),
    ],
)
def test_what_windows_have_inside_of_the_image(operator: dict[str, Any], strips: int, taps: int) -> None:
    graph = integer_graph(build(OpModel.model_validate(operator)))
    known = quantities(graph.view(graph.layers[0]), None)
    assert (known["strips"], known["taps"]) == (strips, taps)


def test_a_fit_to_layers_of_one_kind_goes_before_one_to_all_that_the_kernel_computes(tmp_path: Path) -> None:
    name = "mini.gemm rows=4"
    fits = {key: {"factors": {"call": cost}} for key, cost in ((name, 10.0), (of_kind(name, "add"), 20.0))}
    both = written(tmp_path, table(fits=fits, layers={}))
    assert both.price(KERNEL, view(), MiniParams(), HOST) == Price(10, "fitted")
    fits[of_kind(name, "fully_connected")] = {"factors": {"call": 30.0}}
    assert written(tmp_path, table(fits=fits, layers={})).price(KERNEL, view(), MiniParams(), HOST).cost == 30


def test_transforms_into_blocks_are_a_kind_of_their_own() -> None:
    """They copy runs of channels: the model of those that copy one element after the other says nothing of them."""
    kinds = {
        kind_of(f"layout int8[1x8x8x32]{before} -> int8[1x8x8x32]{after}")
        for before, after in (("", "NCHW16c"), ("NCHW4c", ""))
    }
    assert kinds == {"layout in blocks"}
    assert kind_of("layout int8[1x8x8x32] -> int8[1x8x8x32]NCHW") == "layout"
    assert kind_of("pad int8[1x8x8x32]NCHW16c -> int8[1x9x9x32]NCHW16c before=0x1x1x0") == "pad"
