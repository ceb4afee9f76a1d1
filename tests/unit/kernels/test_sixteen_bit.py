"""What kernels of 16-bit activations refuse together: they know int8 weights without a zero point only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stages.graph import LayerView
from stages.kernels.sixteen_bit import not_sixteen_by_eight
from tests.conformance.draw import Draw, with_constants, with_op
from tests.conformance.operators.sixteen import conv2d, depthwise, fully_connected


@pytest.mark.parametrize("make", [conv2d, depthwise, fully_connected])
def test_weights(make: Callable[[Draw], LayerView]) -> None:
    layer = make(Draw(1, "int16"))
    assert not_sixteen_by_eight(layer) == ""
    reason = "weights are not int8 constants without a zero point"
    assert not_sixteen_by_eight(with_op(layer, weight_zero_point=1)) == reason
    wide = with_constants(layer, weights=layer.constant("weights").astype(np.int16))
    assert not_sixteen_by_eight(wide) == reason


def test_activations() -> None:
    layer = conv2d(Draw(1, "int16"))
    x = layer.inputs[0].model_copy(update={"dtype": "int8"})
    narrow = LayerView(layer.layer, {**layer.tensors, x.name: x}, layer.arrays)
    assert not_sixteen_by_eight(narrow) == f"tensor {x.name} is int8; this kernel is for int16"
