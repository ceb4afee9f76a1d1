"""Generic kernels against the integer reference: the C micro-kernels, and the TIR that states their meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from stages.graph import LayerView, Move, Op
from stages.graph.tensor import ITEM_BYTES
from stages.kernels.generic.convolution import ConvParams
from stages.kernels.generic.parameters import FIELDS
from stages.kernels.kernel import Kernel
from stages.kernels.registry import kernels
from stages.reference.integer import run_layer
from tests.support import random_layers as layers
from tests.support.emitted import target_named
from tests.support.one_layer import Case, run_layers
from tests.support.random_layers import Draw

GENERIC = kernels(["generic"])
LAYOUTS = [(a, b) for a in ("NHWC", "NCHW") for b in ("NHWC", "NCHW")]


def kernel_for(view: LayerView) -> Kernel:
    (found,) = (kernel for kernel in GENERIC.values() if view.op.op in kernel.ops)
    return found


def case(make: Callable[[Draw], LayerView], seed: int, dtype: str, *, tensorized: bool = True) -> Case:
    draw = Draw(seed, dtype)
    view = make(draw)
    return Case(kernel_for(view), view, [draw.array(x.shape, x.dtype) for x in view.inputs], tensorized)


def check(cases: list[Case]) -> None:
    """Every output equal to the reference's; not all of them constant, or the check would mean little."""
    varied = 0
    for number, (tested, y) in enumerate(zip(cases, run_layers(cases), strict=True)):
        expected = run_layer(tested.view, tested.inputs)
        np.testing.assert_array_equal(y, expected, f"case {number}: {tested.view.layer} {tested.view.inputs}")
        varied += len(np.unique(expected)) > 1
    assert varied > len(cases) / 2


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "make",
    [
        layers.conv2d,
        layers.depthwise_conv2d,
        layers.fully_connected,
        layers.pool2d,
        layers.add,
        layers.mul,
        layers.activation,
        layers.requantize,
        layers.quantize,
        layers.dequantize,
        layers.mean,
        layers.softmax,
        layers.l2_normalization,
        layers.concatenation,
        layers.move,
    ],
    ids=lambda make: make.__name__,
)
def test_c_and_tir_equal_the_reference(make: Callable[[Draw], LayerView], dtype: str) -> None:
    """Random layers: C for all of them; for some the TIR alone, which takes longer to compile."""
    check(
        [case(make, seed, dtype) for seed in range(10)]
        + [case(make, seed, dtype, tensorized=False) for seed in range(20, 24)]
    )


@pytest.mark.parametrize("make", [layers.concatenation, layers.move], ids=lambda make: make.__name__)
@pytest.mark.parametrize("target", ["host", "rv32-scalar"])
def test_copies_by_words(make: Callable[[Draw], LayerView], target: str) -> None:
    """Rows of 32-bit and 64-bit words, of 8-bit and of 32-bit elements, beside copies that only bytes can do."""
    chosen = target_named(target)
    drawn = [case(make, seed, "int8") for seed in range(100)]
    cases = [
        replace(one, params=params, target=chosen)
        for one in drawn
        for params in one.kernel.candidates(one.view, chosen)[1:]
    ]
    assert len(cases) >= 20
    check(cases)
    sizes = {
        copy.word_bytes(ITEM_BYTES[one.view.outputs[0].dtype], chosen)
        for one in cases
        for copy in one.kernel.copies(one.view)  # type: ignore[attr-defined]
    }
    assert sizes >= ({4, 8} if chosen.word_bits == 64 else {4})


@pytest.mark.parametrize("layouts", LAYOUTS, ids="->".join)
@pytest.mark.parametrize(
    "make", [layers.conv2d, layers.depthwise_conv2d, layers.pool2d], ids=lambda make: make.__name__
)
def test_any_layout_in_and_out(make: Callable[[Draw, tuple[str, str]], LayerView], layouts: tuple[str, str]) -> None:
    check([case(lambda draw: make(draw, layouts), seed, ("int8", "uint8")[seed % 2]) for seed in range(40, 46)])


@pytest.mark.parametrize("layouts", [("NHWC", "NCHW"), ("NCHW", "NHWC")], ids="->".join)
@pytest.mark.parametrize(
    "make", [layers.add, layers.mul, layers.activation, layers.requantize, layers.quantize, layers.dequantize],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_elementwise_layers_write_another_layout_than_they_read(
    make: Callable[[Draw], LayerView], layouts: tuple[str, str]
) -> None:
    def relabelled(draw: Draw) -> LayerView:
        view = make(draw)
        update = {t.name: layouts[t in view.outputs] for t in (*view.inputs, *view.outputs) if len(t.shape) == 4}
        changed = {name: view.tensors[name].model_copy(update={"layout": layout}) for name, layout in update.items()}
        return replace(view, tensors={**view.tensors, **changed})

    drawn = [case(relabelled, seed, ("int8", "uint8")[seed % 2]) for seed in range(80, 100)]
    cases = [one for one in drawn if len(one.view.outputs[0].shape) == 4]
    assert len(cases) >= 4
    check(cases)


@pytest.mark.parametrize("pixels", [1, 3, 8])
def test_convolution_in_tiles_of_any_size(pixels: int) -> None:
    """Also tiles that do not divide the number of pixels, and such that are larger."""
    cases = [case(layers.conv2d, seed, "int8") for seed in range(60, 66)]
    check([replace(c, params=ConvParams(pixels=pixels)) for c in cases])


@pytest.mark.parametrize("shift", [-31, -1, 0, 1, 7])
def test_every_shift_of_a_fully_connected_layer(shift: int) -> None:
    """Left shifts too: sums are kept small enough that the reference does not overflow."""

    def make(draw: Draw) -> LayerView:
        view = layers.fully_connected(draw)
        units = view.op.units
        arrays = dict(view.arrays)
        arrays[view.layer.constants["shift"]] = np.full(units, shift, np.int32)
        arrays[view.layer.constants["weights"]] = np.sign(view.constant("weights").astype(np.int16)).astype(np.int8)
        for role in ("bias", "weights"):
            if view.has(role):
                arrays[view.layer.constants[role]] = arrays[view.layer.constants[role]] // (
                    1 if role == "weights" else 64
                )
        op = view.op.model_copy(update={"weight_zero_point": 0, "rounding": ("double", "single")[draw.seed % 2]})
        layer = view.layer.model_copy(update={"op": op})
        return replace(view, layer=layer, arrays=arrays)

    cases = [case(make, seed, "int8") for seed in range(6)]
    for tested, y in zip(cases, run_layers(cases), strict=True):
        np.testing.assert_array_equal(y, run_layer(tested.view, tested.inputs))


def test_every_operator_has_a_kernel() -> None:
    """All of the graph's operators but float, which TVM lowers."""
    known = {name for cls in get_args(get_args(Op)[0]) for name in get_args(cls.model_fields["op"].annotation)}
    covered = {name for kernel in GENERIC.values() for name in kernel.ops}
    assert covered == known - {"float"}


def test_structures_have_the_fields_of_the_header() -> None:
    header = (GENERIC["generic.conv2d"].folder / "generic.h").read_text()
    found = {}
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", header, re.DOTALL):
        assert set(re.findall(r"\b\w+_t\b", body)) == {"int32_t"}
        found[name] = tuple(re.findall(r"\w+(?=[,;])", body))
    assert found == FIELDS


def test_reasons_name_what_does_not_fit() -> None:
    draw = Draw(1)
    wide = layers.fully_connected(draw)
    x = wide.inputs[0].model_copy(update={"dtype": "int16"})
    assert "int16" in kernel_for(wide).why_not(replace(wide, tensors={**wide.tensors, "x": x}), None)  # type: ignore[arg-type]
    deep = wide.layer.model_copy(update={"op": wide.op.model_copy(update={"depth": 70000})})
    assert "70000" in kernel_for(wide).why_not(replace(wide, layer=deep), None)  # type: ignore[arg-type]
    moved = layers.move(draw)
    odd = moved.layer.model_copy(update={"op": Move(kind="roll")})
    assert "roll" in kernel_for(moved).why_not(replace(moved, layer=odd), None)  # type: ignore[arg-type]


def test_every_kernel_states_a_cost() -> None:
    makes = (layers.conv2d, layers.depthwise_conv2d, layers.fully_connected, layers.pool2d, layers.add, layers.mul)
    more = (layers.activation, layers.requantize, layers.mean, layers.softmax, layers.concatenation, layers.move)
    for make in makes + more:
        view = make(Draw(3))
        kernel = kernel_for(view)
        assert kernel.cost(view, kernel.params(), target_named("rv32-scalar")) > 0
