"""Lower the Relax module of the stage layout to the integer graph."""

from dataclasses import dataclass, field
from typing import Any

from tvm import IRModule, ir, relax

from stages.base import StageError
from stages.ir.graph import Float, Graph, Layer, Layout, Tensor
from stages.ir.operators.declaration import CUSTOM
from stages.ir.operators.table import OPERATORS, kind_of
from stages.ir.operators.variables import Assign
from stages.ir.relax_module import CONSTANT, LAYOUT, OperatorCall, attributes, operator_calls
from stages.quantize.arithmetic import NoMultiplier
from stages.quantize.float_rows import float_rows
from stages.quantize.onnx_runtime import PATTERNS as ONNX_PATTERNS
from stages.quantize.operator import Operator, quant_of
from stages.quantize.patterns import MOVES, PATTERNS, pattern_of
from stages.quantize.patterns.arithmetic import of_int32
from stages.quantize.writer import GraphWriter
from stages.support.messages.operator_error import OperatorError, combined_error

_EDGES = {("QUANTIZE", "float32"), ("QUANTIZE", "int32"), ("DEQUANTIZE", "float32")}
_FLOAT_TYPES = {"float32", "int32", "int64", "bool"}


@dataclass
class Lowered:
    """The integer graph, and the Relax functions that its Float layers call, by name."""

    graph: Graph
    float_functions: list[str] = field(default_factory=list)


def lower_module(module: IRModule, description: dict[str, Any], *, twice: bool = False) -> Lowered:
    """Lower every operator. `description` is the content of tensors.json.

    twice: round sums of real numbers in ONNX networks as TFLite's kernels do, and not once.

    Raises StageError that lists all operators without an integer form.
    """
    return _Lowering(module, description, twice=twice).run()


def _forget_rewritten_states(graph: Graph) -> None:
    """Turn states that each run writes before it reads them into ordinary tensors."""
    first_use: dict[str, Layer] = {}
    for layer in graph.layers:
        for name in (*layer.inputs, *layer.state):
            first_use.setdefault(name, layer)
    for name, tensor in graph.tensors.items():
        if tensor.state and name in first_use and isinstance(first_use[name].op, Assign):
            graph.tensors[name] = tensor.model_copy(update={"state": False})


class _Lowering:
    def __init__(self, module: IRModule, description: dict[str, Any], *, twice: bool) -> None:
        self.module, self.twice = module, twice
        self.file_tensors: list[dict[str, Any]] = description["tensors"]
        self.file_inputs = {entry["index"]: entry["inputs"] for entry in description["operators"]}
        self.between = {entry["index"]: entry.get("intermediates", ()) for entry in description["operators"]}
        self.rules = {entry["index"]: entry.get("rule") for entry in description["operators"]}
        self.options = {entry["index"]: entry["options"] for entry in description["operators"]}
        self.lowered = Lowered(Graph())
        self.writer = GraphWriter(self.lowered.graph)
        self.values: dict[relax.Var, Tensor | list[Tensor]] = {}
        self.errors: list[OperatorError] = []

    def run(self) -> Lowered:
        """Return the lowered module."""
        main, graph = self.module["main"], self.lowered.graph
        facts = attributes(main)
        for parameter, index in zip(main.params, facts["inputs"], strict=True):
            is_state = index in facts.get("states", ())
            tensor = self.writer.tensor(self._file_tensor(index, "").model_copy(update={"state": is_state}))
            self.values[parameter] = tensor
            if not is_state:
                graph.inputs.append(tensor.name)
        calls = {call.variable: call for call in operator_calls(self.module)}
        for block in main.body.blocks:
            for binding in block.bindings:
                self._bind(binding.var, binding.value, calls)
        if self.errors:
            raise combined_error(self.errors)
        _forget_rewritten_states(graph)
        result = self._value(main.body.body)
        graph.outputs.extend(tensor.name for tensor in (result if isinstance(result, list) else [result]))
        return self.lowered

    def _bind(self, variable: relax.Var, value: relax.Expr, calls: dict[relax.Var, OperatorCall]) -> None:
        if isinstance(value, relax.Call) and isinstance(value.op, ir.GlobalVar):
            outputs = self._operator(calls[variable])
            self.values[variable] = outputs if isinstance(variable.ty, relax.TupleType) else outputs[0]
        else:
            self.values[variable] = self._value(value)

    def _value(self, expr: relax.Expr) -> Tensor | list[Tensor]:
        """Tensors of an expression of `main` that is not a call."""
        if isinstance(expr, relax.Var):
            return self.values[expr]
        if isinstance(expr, relax.TupleGetItem):
            tensors = self._value(expr.tuple_value)
            return tensors[expr.index] if isinstance(tensors, list) else tensors
        if isinstance(expr, relax.Tuple):
            parts = [self._value(part) for part in expr.fields]
            return [part for part in parts if isinstance(part, Tensor)]
        raise StageError(f"the module's main function has an unexpected {type(expr).__name__}")

    def _operator(self, call: OperatorCall) -> list[Tensor]:
        inputs = [self._input(argument) for argument in call.arguments]
        layout = call.attributes.get("out_layout", "")
        file_outputs = [self._file_tensor(index, layout) for index in call.outputs]
        if call.op == LAYOUT:
            file_outputs = [file_outputs[0].model_copy(update={"name": f"{inputs[0].name}/{layout}"})]
        outputs = [self.writer.tensor(tensor) for tensor in file_outputs]
        file_inputs = [self.file_tensors[i] if i >= 0 else None for i in self.file_inputs.get(call.index, ())]
        options, rule = self.options.get(call.index, {}), self.rules.get(call.index)
        onnx, rule = rule is not None, {**(rule or {}), "twice": self.twice}
        intermediates = [self.file_tensors[i] for i in self.between.get(call.index, ())]
        operator = Operator(call, inputs, outputs, options, file_inputs, intermediates, onnx=onnx, rule=rule)
        self.writer.operator = operator
        try:
            self._layers(operator)
        except OperatorError as error:
            # The file describes the outputs, so later operators are checked too.
            self.errors.append(error)
        except NoMultiplier as error:
            self.errors.append(operator.error(str(error)))
        # A layer may replace its output (an alias) but keeps the name.
        return [self.lowered.graph.tensors[tensor.name] for tensor in outputs]

    def _layers(self, operator: Operator) -> None:
        call, pattern = operator.call, pattern_of(operator.call.op)
        pattern = ONNX_PATTERNS.get(call.op, pattern) if operator.onnx else pattern
        floats = all(tensor.dtype in _FLOAT_TYPES for tensor in (*operator.inputs, *operator.outputs))
        declaration = OPERATORS.get(call.op)
        is_plugin = call.op not in PATTERNS and (not floats or call.op.startswith(CUSTOM))
        if pattern is not None and (
            is_plugin or (declaration is not None and (declaration.legalization.opaque or declaration.tensors.state))
        ):
            pattern(operator, self.writer)  # import has checked the declaration
        elif call.op not in MOVES and floats:
            if not of_int32(operator, self.writer):
                self._float(operator)
        elif pattern is not None:
            self._check_quantization(operator)
            pattern(operator, self.writer)
        else:
            supported = ", ".join(sorted(set(PATTERNS) - {LAYOUT, CONSTANT}))
            raise operator.error("has no integer form", f"Operators with an integer form: {supported}.")

    def _input(self, argument: relax.Expr) -> Tensor:
        value = self._value(argument)
        if not isinstance(value, Tensor):
            raise StageError("the module's main function passes a tuple to an operator")
        return value

    def _float(self, operator: Operator) -> None:
        call = operator.call
        if len(operator.outputs) != 1:
            raise operator.error("has several outputs; among float operators only SPLIT may have several")
        rows = float_rows(call.function)
        op = Float(kind=kind_of(call.op), function=call.symbol, macs=self._macs(operator), rows=rows)
        self.writer.layer(op, operator.inputs, operator.outputs[0])
        self.lowered.float_functions.append(call.symbol)

    def _macs(self, operator: Operator) -> int:
        """Multiply-accumulates, from the shape of the weights in the file."""
        call = operator.call
        macs = OPERATORS[call.op].weights.macs
        if macs is None:
            return 0
        weights: list[int] = self.file_tensors[self.file_inputs[call.index][1]]["shape"]
        return operator.outputs[0].elements * macs(tuple(weights))

    def _check_quantization(self, operator: Operator) -> None:
        """Raise OperatorError unless integer tensors of a computing operator have one scale each."""
        if operator.call.op in MOVES:
            return
        for tensor in (*operator.inputs, *operator.outputs):
            if tensor.dtype in ("int8", "uint8", "int16"):
                if tensor.quant is None:
                    raise operator.error(f"has no scale for {tensor.name!r}")
                if len(tensor.quant.scale) != 1:
                    raise operator.error(f"has one scale per channel for {tensor.name!r}, which is not a constant")
            elif (operator.call.op, tensor.dtype) not in _EDGES:
                raise operator.error(
                    f"has the type {tensor.dtype} in {tensor.name!r}",
                    "Integer operators take int8, uint8 or int16 tensors.",
                )

    def _file_tensor(self, index: int, layout: Any) -> Tensor:
        entry = self.file_tensors[index]
        shape = tuple(entry["shape"])
        return Tensor(
            name=entry["name"] or f"tensor{index}",
            shape=shape,
            dtype=entry["dtype"],
            layout=Layout(layout if len(shape) == 4 else ""),
            quant=quant_of(entry),
            tflite_index=index,
        )
