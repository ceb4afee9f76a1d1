"""Which products the float schedule sees, the blocks it chooses for them, and how their weights are packed."""

from typing import Any

import numpy as np
import pytest

from stages.tensorize.float_product import BLOCKS, Packing, find_product, product_block


@pytest.mark.parametrize(
    ("rows", "columns", "smallest"),
    [(8, 64, 16), (17, 192, 16), (71, 192, 16), (149, 32, 16), (35, 48, 16), (7, 24, 16), (1, 1001, 8), (3, 64, 12)],
)
def test_a_block_is_large_also_where_nothing_divides_the_extents(rows: int, columns: int, smallest: int) -> None:
    height, width = product_block(rows, columns)
    assert height * width >= smallest


def test_a_block_fits_what_it_covers_and_the_registers() -> None:
    for rows in range(1, 20):
        for columns in range(1, 20):
            height, width = product_block(rows, columns)
            assert height <= rows and width <= columns and (height, width) in BLOCKS
            assert height * width <= 16


def test_packing_moves_each_element_where_its_indices_say() -> None:
    weights = np.arange(8 * 3 * 5).reshape(3, 8, 5)
    packing = Packing(param=1, axis=1, width=4)
    packed = packing.pack(weights)
    assert packed.shape == (2, 3, 5, 4) and packed.flags.c_contiguous
    for index in np.ndindex(weights.shape):
        assert packed[tuple(packing.indices(*index))] == weights[index]


def block_of(build: Any, *shapes: tuple[int, ...]) -> Any:
    """The reduction block of a Relax operator applied to float32 tensors of these shapes."""
    import tvm
    from tvm import relax, s_tir

    builder = relax.BlockBuilder()
    inputs = [relax.Var(f"x{i}", relax.TensorType(shape, "float32")) for i, shape in enumerate(shapes)]
    with builder.function("main", inputs):
        with builder.dataflow():
            out = builder.emit_output(build(*inputs))
        builder.emit_func_output(out)
    legal = relax.transform.LegalizeOps()(builder.get())
    (func,) = (func for func in legal.functions.values() if isinstance(func, tvm.tirx.PrimFunc))
    sch = s_tir.Schedule(tvm.IRModule({"main": func}))
    return sch.get(list(sch.get_child_blocks(sch.get_sblock("root")))[-1])


def test_a_convolution_is_a_product_of_pixels_and_channels() -> None:
    from tvm import relax

    def build(x: Any, w: Any) -> Any:
        return relax.op.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI")

    block = block_of(build, (1, 8, 8, 4), (6, 3, 3, 4))
    found = find_product(block)
    assert found is not None and (found.row, found.column, found.axis) == (2, 3, 0)
