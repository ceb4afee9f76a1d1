"""Apply the layout plan: rewrite functions, insert transforms, rebuild `main`."""

from math import prod
from typing import Any

import numpy as np
from tvm import IRModule, relax

from stages.base import StageError
from stages.ir.operators.table import kind_of
from stages.ir.relax_module import LAYOUT, OperatorCall, Step, attributes, build_main, operator_calls
from stages.layout.assign import Plan, Transform, assign
from stages.layout.relayout import NotRenumberable, relayout, renumberable, transform_function
from stages.layout.rules import LayoutConfig, Operator, class_of, unused, warnings
from stages.support.messages.operator_error import operator_label


def lay_out(module: IRModule, config: LayoutConfig) -> tuple[IRModule, dict[str, Any]]:
    """Return the module (all NHWC) with layouts by `config`, and a report that explains them.

    report: {operators: [{index, op, name, data, out, why}], transforms: [{tensor, name, shape, from, to, bytes,
    before, moves, reason}], unused_rules: [numbers, from 1], warnings: [sentences]}. Operators without 4-D tensors
    have the layout ''. Raises StageError.
    """
    calls = list(operator_calls(module))
    facts = attributes(module["main"])
    tensors = _tensors(module, calls, facts)
    operators = [_operator(call) for call in calls]
    shapes = {index: shape for index, (shape, _) in tensors.items()}
    sizes = {index: np.dtype(dtype).itemsize for index, (_, dtype) in tensors.items()}
    plan = assign(operators, shapes, facts["inputs"], facts["outputs"], config, sizes)
    report = _report(operators, plan, shapes, sizes, {t: op.name for op in operators for t in reversed(op.outputs)})
    report["unused_rules"] = unused(operators, config)
    report["warnings"] = warnings(operators, config)
    return _apply(calls, plan, tensors, facts), report


def _tensors(
    module: IRModule, calls: list[OperatorCall], facts: dict[str, Any]
) -> dict[int, tuple[tuple[int, ...], str]]:
    """Shape and dtype of the tensors that `main` passes around, by index."""
    types_by_index: dict[int, relax.TensorType] = {}
    for index, parameter in zip(facts["inputs"], module["main"].params, strict=True):
        types_by_index[index] = parameter.ty
    for call in calls:
        result = call.function.ret_ty
        types = list(result.fields) if isinstance(result, relax.TupleType) else [result]
        types_by_index.update(zip(call.outputs, types, strict=True))
    return {
        index: (tuple(int(size) for size in type_.shape), str(type_.dtype.dtype))
        for index, type_ in types_by_index.items()
    }


def _operator(call: OperatorCall) -> Operator:
    shape = tuple(int(size) for size in call.function.params[0].ty.shape) if call.inputs else ()
    kind = kind_of(call.op)
    groups = shape[-1] if kind == "depthwise_conv2d" else _groups(call.function)
    # A convolution with computed weights has a second parameter; it stays as imported.
    layout = class_of(kind)
    able = len(call.inputs) == 1 if layout == "transposing" else layout == "following" and renumberable(call.function)
    return Operator(call.index, call.op, call.name, shape, groups, call.inputs, call.outputs, able)


def _groups(function: relax.Function) -> int:
    for block in function.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Call) and value.op.name == "relax.nn.conv2d":
                return int(value.attrs.groups)
    return 1


def _apply(
    calls: list[OperatorCall], plan: Plan, tensors: dict[int, tuple[tuple[int, ...], str]], facts: dict[str, Any]
) -> IRModule:
    builder = relax.BlockBuilder()
    steps: list[Step] = []
    pending: dict[int | None, list[Transform]] = {transform.before: [] for transform in plan.transforms}
    for transform in plan.transforms:
        pending[transform.before].append(transform)

    def insert(before: int | None) -> None:
        for transform in pending.get(before, ()):
            shape, dtype = tensors[transform.tensor]
            target = transform.target.lower()
            name, variable = f"layout_t{transform.tensor}_{target}", _value(transform.tensor, transform.source, plan)
            function = transform_function(name, variable, shape, dtype, transform.target)
            function = function.with_attrs({
                "firmline.index": -1,
                "firmline.op": LAYOUT,
                "firmline.name": f"t{transform.tensor}/{target}",
                "firmline.inputs": [transform.tensor],
                "firmline.outputs": [transform.tensor],
                "firmline.data_layout": transform.source,
                "firmline.out_layout": transform.target,
            })  # fmt: skip
            result = _value(transform.tensor, transform.target, plan)
            steps.append(Step(builder.add_func(function, name), (variable,), (result,)))

    for call in calls:
        insert(call.index)
        decision = plan.decisions[call.index]
        try:
            function = relayout(call.function, call.symbol, decision.data, decision.out)
        except NotRenumberable as error:
            raise StageError(
                f"{operator_label(call.index, call.op, call.name)} cannot change its layout: {error}"
            ) from None
        function = function.with_attrs({
            "firmline.data_layout": decision.data,
            "firmline.out_layout": decision.out,
            "firmline.wanted_layout": decision.wanted,
            "firmline.layout_rule": decision.rule,
        })  # fmt: skip
        arguments = tuple(_value(index, decision.data, plan) for index in call.inputs)
        results = tuple(_value(index, decision.out, plan) for index in call.outputs)
        steps.append(Step(builder.add_func(function, call.symbol), arguments, results))
    insert(None)

    inputs = {f"t{index}": relax.TensorType(tensors[index][0], tensors[index][1]) for index in facts["inputs"]}
    outputs = [_value(index, "NHWC", plan) for index in facts["outputs"]]
    named = {f"firmline.{key}": list(value) for key, value in facts.items()}
    return build_main(builder, inputs, steps, outputs, named)


def _value(tensor: int, layout: str, plan: Plan) -> str:
    """Name in `main` of a tensor in `layout`."""
    if tensor not in plan.tensors or layout == plan.tensors[tensor]:
        return f"t{tensor}"
    return f"t{tensor}_{layout.lower()}"


def _report(
    operators: list[Operator],
    plan: Plan,
    shapes: dict[int, tuple[int, ...]],
    sizes: dict[int, int],
    names: dict[int, str],
) -> dict[str, Any]:
    rows = []
    for operator in operators:
        decision = plan.decisions[operator.index]
        rows.append({
            "index": operator.index, "op": operator.op, "name": operator.name, "data": decision.data,
            "out": decision.out, "why": decision.why,
        })  # fmt: skip
    transforms = []
    for transform in plan.transforms:
        shape = shapes[transform.tensor]
        transforms.append({
            "tensor": transform.tensor, "name": names.get(transform.tensor, f"t{transform.tensor}"),
            "shape": list(shape), "from": transform.source, "to": transform.target,
            "bytes": prod(shape) * sizes[transform.tensor], "before": transform.before, "moves": transform.moves,
            "reason": transform.reason,
        })  # fmt: skip
    return {"operators": rows, "transforms": transforms}
