"""Strided walks against numpy's own strides."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.graph import Tensor
from stages.kernels.tir.strides import Axis, broadcast_strides, logical_strides, offset, walk

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def tensor(shape: tuple[int, ...], layout: str) -> Tensor:
    return Tensor(name="t", shape=shape, dtype="int8", layout=layout if len(shape) == 4 else "")  # type: ignore[arg-type]


def visited(axes: list[Axis], buffer: int) -> list[int]:
    steps = itertools.product(*(range(axis.extent) for axis in axes))
    return [offset(step, axes, buffer) for step in steps]


@given(SHAPES, st.sampled_from(["NHWC", "NCHW"]), st.sampled_from(["NHWC", "NCHW"]))
@settings(max_examples=100)
def test_a_walk_pairs_the_elements_of_two_layouts(shape: tuple[int, ...], to: str, source: str) -> None:
    x, y = tensor(shape, source), tensor(shape, to)
    numbered = np.arange(x.elements).reshape(shape)
    in_memory = numbered.transpose(x.permutation).reshape(-1)
    axes = walk(shape, logical_strides(y), logical_strides(x))
    assert visited(axes, 0) == list(range(y.elements))  # the order of the first buffer's memory
    walked = [int(in_memory[i]) for i in visited(axes, 1)]
    assert walked == numbered.transpose(y.permutation).reshape(-1).tolist()


@given(SHAPES, st.data())
@settings(max_examples=100)
def test_broadcast_strides_repeat_like_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    small = tuple(data.draw(st.sampled_from([1, n])) for n in shape)[data.draw(st.integers(0, len(shape) - 1)) :]
    x, y = tensor(small, ""), tensor(shape, "")
    values = np.arange(x.elements).reshape(small)
    axes = walk(shape, logical_strides(y), broadcast_strides(x, shape))
    assert visited(axes, 1) == np.broadcast_to(values, shape).reshape(-1).tolist()


def test_neighbours_that_are_one_run_become_one_axis() -> None:
    nhwc, nchw = tensor((2, 4, 4, 3), "NHWC"), tensor((2, 4, 4, 3), "NCHW")
    assert walk(nhwc.shape, logical_strides(nhwc), logical_strides(nhwc)) == [Axis(96, (1, 1))]
    axes = walk(nhwc.shape, logical_strides(nchw), logical_strides(nhwc))
    assert axes == [Axis(2, (48, 48)), Axis(3, (16, 1)), Axis(16, (1, 3))]
    assert walk((1, 1), (1, 1)) == [Axis(1, (1,))]
