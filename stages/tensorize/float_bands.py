"""Relax functions of float operators on a band: few rows, no padding above and below."""

from typing import Any

from tvm import relax

from stages.ir.operators.floats import FloatRows
from stages.ir.relax_module import build_function


def band_function(function: relax.Function, window: FloatRows, rows: int) -> relax.Function:
    """Return the function of an operator for `rows` rows of its output.

    Its arithmetic is that for whole images.
    """
    height = (rows - 1) * window.stride + window.size
    parameters = []
    for parameter in function.params:
        _, _, width, channels = (int(size) for size in parameter.ty.shape)
        shape = relax.TensorType((1, height, width, channels), parameter.ty.dtype)
        parameters.append(relax.Var(parameter.name, shape))
    values: dict[Any, Any] = dict(zip(function.params, parameters, strict=True))

    def used(expression: Any) -> Any:
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([used(field) for field in expression.fields])
        return values.get(expression, expression) if isinstance(expression, relax.Var) else expression

    def body(builder: relax.BlockBuilder) -> Any:
        for block in function.body.blocks:
            for binding in block.bindings:
                value = binding.value
                if isinstance(value, relax.Call):
                    value = _without_vertical_padding(value, [used(argument) for argument in value.args])
                values[binding.var] = builder.emit(used(value))
        return values[function.body.body]

    return build_function("main", parameters, body)


def _without_vertical_padding(call: relax.Call, arguments: list[Any]) -> relax.Call:
    name, attrs = call.op.name, call.attrs
    if name == "relax.nn.pad":
        widths = [0 if place in (2, 3) else int(width) for place, width in enumerate(attrs.pad_width)]
        return relax.op.nn.pad(arguments[0], widths, attrs.pad_mode, attrs.pad_value)
    if name not in ("relax.nn.conv2d", "relax.nn.avg_pool2d", "relax.nn.max_pool2d"):
        return relax.Call(call.op, arguments, attrs)
    _, left, _, right = (int(width) for width in attrs.padding)
    options = {"strides": list(attrs.strides), "dilation": list(attrs.dilation), "padding": [0, left, 0, right]}
    if name == "relax.nn.conv2d":
        layouts = {key: str(getattr(attrs, key)) for key in ("data_layout", "kernel_layout", "out_layout")}
        conv2d = relax.op.nn.conv2d
        return conv2d(*arguments, **options, **layouts, groups=int(attrs.groups), out_dtype=attrs.out_dtype)
    pool = relax.op.nn.avg_pool2d if name == "relax.nn.avg_pool2d" else relax.op.nn.max_pool2d
    return pool(
        arguments[0],
        pool_size=list(attrs.pool_size),
        **options,
        ceil_mode=bool(attrs.ceil_mode),
        count_include_pad=bool(attrs.count_include_pad),
        layout="NHWC",
        out_layout="NHWC",
    )
