"""TIR of element-wise layers: a C function for a run of elements."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from stages.backends.kernels.kernel import Lowering
from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, position, store
from stages.backends.kernels.tir.strides import broadcast_strides, logical_strides, offset, walk
from stages.ir.graph import LayerView


def elementwise_layer(
    view: LayerView,
    function: str,
    value: Callable[[Sequence[Any], Any], Any],
    constants: dict[str, Operand],
    extra: Sequence[Any] = (),
    *,
    index: Callable[[Sequence[Any]], Any] | None = None,
) -> Lowering:
    """Return y[i] = value(elements, operands) over the inputs' elements.

    With `index`, `value` gets index(elements) as one variable that may occur in an index. The C function gets
    (inputs..., y, count, step of each input, constants..., extra...); '' for no C function.
    """
    out = view.outputs[0]
    axes = walk(out.shape, logical_strides(out), *(broadcast_strides(x, out.shape) for x in view.inputs))
    run, outer = axes[-1], axes[:-1]
    steps = run.strides[1:]
    names = [f"x{i}" for i in range(len(view.inputs))]

    def meaning(b: Any) -> None:
        with ExitStack() as loops:
            i = loops.enter_context(loop(("i", run.extent)))
            elements = [getattr(b, name)[i * step if step != 1 else i] for name, step in zip(names, steps, strict=True)]
            if index:
                store(b.acc, index(elements), 0)
                elements = [loops.enter_context(position("at", b.acc[0]))]
            store(b.y, value(elements, b), i)

    def arguments(b: Any) -> list[Any]:
        constant_buffers = [getattr(b, key) for key in constants]
        return [*(getattr(b, name) for name in names), b.y, run.extent, *steps, *constant_buffers, *extra]

    operands = (
        *(Operand(n, ((run.extent - 1) * s + 1,), x.dtype) for n, s, x in zip(names, steps, view.inputs, strict=True)),
        *constants.values(),
        Operand("y", (run.extent,), out.dtype, "w"),
        *([accumulator()] if index else []),
    )
    row = Block("row", operands, meaning, function, arguments)
    with Function(view.op.op) as f:
        inputs = [f.input(i, (x.elements,), x.dtype) for i, x in enumerate(view.inputs)]
        buffers = {key: f.constant(key, operand.shape, operand.dtype) for key, operand in constants.items()}
        y = f.output(0, (out.elements,), out.dtype)
        if index:
            buffers["acc"] = f.scratch("acc", (1,), "int32")
        with f.loop(*((f"i{depth}", axis.extent) for depth, axis in enumerate(outer))) as variables:
            starts = [offset(variables, outer, k) for k in range(len(inputs) + 1)]
            regions = {n: (buffer, starts[1 + k]) for k, (n, buffer) in enumerate(zip(names, inputs, strict=True))}
            f.place(row, **regions, **buffers, y=(y, starts[0]))
    return f.lowering()
