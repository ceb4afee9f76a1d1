"""Build the Relax module of a TFLite file: `main` calls one private function per operator."""

from typing import Any

import tflite
from tvm import IRModule, relax

from stages.base import StageError
from stages.import_model.checks import check_ends, check_graph, check_operator
from stages.import_model.checks.graph import NOTHING_TO_RUN
from stages.import_model.converter import Converter, Unsupported
from stages.import_model.operators import hint_for, operator_error, unsupported_reason
from stages.import_model.trim_windows import trim_options
from stages.ir.model_info import ModelInfo, OperatorInfo
from stages.ir.operators.declaration import CUSTOM
from stages.ir.operators.table import OPERATORS, kind_of
from stages.ir.relax_module import CONSTANT, Step, build_function, build_main
from stages.support.messages.operator_error import OperatorError, combined_error


def build_module(data: bytes, info: ModelInfo) -> IRModule:
    """Return the Relax module of the TFLite file `data`, whose checked contents are `info`.

    Attributes of `main`, with tensor indices of the file:

    - firmline.inputs: the model's inputs, then the state tensors
    - firmline.outputs: the model's outputs
    - firmline.states: the state tensors, if there are any

    Raises StageError that lists all operators that cannot be imported.
    """
    _check_all(info)
    converter = Converter(tflite.Model.GetRootAs(trim_options(data, info), 0), info)
    builder = relax.BlockBuilder()
    steps, errors = [], []
    for operator in info.operators:
        try:
            if converter.fold(operator):
                continue
            name = f"op{operator.index:03d}_{_identifier(operator.op)}"
            function, parameters = _convert(converter, operator, name)
            if not parameters:
                raise operator_error(operator, info, "computes a constant", "Fold constants when exporting the model.")
        except OperatorError as error:
            errors.append(error)
            continue
        steps.append(Step(builder.add_func(function, name), _names(parameters), _names(operator.outputs)))
    if errors:
        raise combined_error(errors)

    computed = {name for step in steps for name in step.results} | set(_names(info.inputs))
    constants = [index for index in dict.fromkeys(info.outputs) if f"t{index}" not in computed]
    if len(constants) == len(set(info.outputs)):
        raise StageError(NOTHING_TO_RUN)
    for position, index in enumerate(constants, len(info.operators)):
        function = _constant(converter, index, position)
        steps.append(Step(builder.add_func(function, f"constant{index}"), (), _names((index,))))
    states = states_of(info)
    data_inputs = [*info.inputs, *states]
    inputs = {f"t{index}": converter.type(index) for index in data_inputs}
    attributes = {"firmline.inputs": data_inputs, "firmline.outputs": list(info.outputs)}
    if states:
        attributes["firmline.states"] = list(states)
    return build_main(builder, inputs, steps, _names(info.outputs), attributes)


def states_of(info: ModelInfo) -> tuple[int, ...]:
    """Return the state tensors: variable tensors that operators read, in order of first use."""
    read = (index for operator in info.operators for index in operator.inputs if index >= 0)
    return tuple(dict.fromkeys(index for index in read if info.tensors[index].variable))


def _identifier(op: str) -> str:
    return kind_of(op) if op.startswith(CUSTOM) else op.lower()


def _names(indices: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"t{index}" for index in indices)


def _convert(converter: Converter, operator: OperatorInfo, name: str) -> tuple[relax.Function, tuple[int, ...]]:
    info = converter.info
    try:
        function, parameters = converter.convert(operator, name)
    except Unsupported as error:
        raise operator_error(operator, info, str(error)) from None
    except Exception as error:  # TVM raises anything: AssertionError, KeyError, InternalError from C++
        reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        raise operator_error(operator, info, f"cannot be converted by TVM's front end: {reason[0]}") from error
    attributes: dict[str, Any] = {
        "firmline.index": operator.index,
        "firmline.op": operator.op,
        "firmline.name": info.tensors[operator.outputs[0]].name,
        "firmline.inputs": list(parameters),
        "firmline.outputs": list(operator.outputs),
    }
    return function.with_attrs(attributes), parameters


def _constant(converter: Converter, index: int, number: int) -> relax.Function:
    """Return the function of a constant output, which depends on no input."""
    function = build_function(f"constant{index}", [], lambda _: converter.typed(index))
    attributes: dict[str, Any] = {
        "firmline.index": number,
        "firmline.op": CONSTANT,
        "firmline.name": converter.info.tensors[index].name,
        "firmline.inputs": [],
        "firmline.outputs": [index],
    }
    return function.with_attrs(attributes)


def _hint(op: str) -> str:
    return hint_for(op) or "`doit operators` lists the supported operators (docs/reference/operators.md)."


def _check_all(info: ModelInfo) -> None:
    """Raise StageError that lists all operators and tensors that later stages cannot handle."""
    check_graph(info)
    errors = []
    for operator in info.operators:
        try:
            _check(operator, info)
        except OperatorError as error:
            errors.append(error)
    if errors:
        raise combined_error(errors)
    check_ends(info)


def _check(operator: OperatorInfo, info: ModelInfo) -> None:
    """Raise OperatorError for an operator that later stages cannot handle."""
    known = OPERATORS.get(operator.op)
    if known is None:
        raise operator_error(operator, info, unsupported_reason(operator.op), _hint(operator.op))
    tensors = [info.tensors[index] for index in (*operator.inputs, *operator.outputs) if index >= 0]
    if not known.quantization.quantized and any(tensor.scale.size for tensor in tensors):
        raise operator_error(operator, info, "is supported for float32 only, not quantized")
    check_operator(operator, info)
