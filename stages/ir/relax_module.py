"""The Relax module between import, layout and quantize: file format and iteration.

`main` calls one private function per imported operator. docs/maintainers/contracts.md lists their attributes. tvm is
imported inside the functions to keep this import cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.support.lazy import ir, relax, tvm

if TYPE_CHECKING:
    from tvm import IRModule, relax
    from tvm.ir import GlobalVar

FILE = "module.json"
ELEMENTWISE = frozenset({
    "relax.abs", "relax.add", "relax.astype", "relax.clip", "relax.cos", "relax.dequantize", "relax.divide",
    "relax.exp", "relax.floor", "relax.less", "relax.log", "relax.maximum", "relax.minimum", "relax.multiply",
    "relax.negative", "relax.nn.leakyrelu", "relax.nn.relu", "relax.power", "relax.quantize", "relax.round",
    "relax.rsqrt", "relax.sigmoid", "relax.sign", "relax.sin", "relax.sqrt", "relax.square", "relax.subtract",
    "relax.tanh", "relax.where",
})  # fmt: skip
"""Operators that compute each element from one element of each input, with broadcasting."""
LAYOUT, CONSTANT = "LAYOUT", "CONSTANT"  # steps without an operator: a layout transform, a constant output


def save_module(module: IRModule, folder: Path) -> None:
    """Write `module.json`: TVM's JSON with weights as base64 (40 MB take about a second).

    Functions are written in the order in which `main` calls them, so equal modules give equal bytes.
    """
    (folder / FILE).write_text(tvm.ir.save_json(_in_call_order(module)))


def load_module(folder: Path) -> IRModule:
    """Read the file of `save_module`. Raises ValueError if it is not a Relax module."""
    module = tvm.ir.load_json((folder / FILE).read_text())
    if not isinstance(module, tvm.IRModule):
        raise ValueError(f"{folder / FILE} is not a Relax module")
    return module


@dataclass(frozen=True)
class OperatorCall:
    """One step of `main`: a call of an operator's function.

    variable   variable to which `main` binds the call
    arguments  variables of `main`, one for each parameter
    index, op, name, inputs, outputs: the function's `firmline.*` attributes (tensor indices of the imported file)
    """

    variable: relax.Var
    symbol: str
    function: relax.Function
    arguments: tuple[relax.Expr, ...]
    index: int
    op: str
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def attributes(self) -> dict[str, Any]:
        """All `firmline.*` attributes without the prefix, as Python values."""
        return attributes(self.function)


def attributes(function: relax.Function) -> dict[str, Any]:
    """Return the `firmline.*` attributes without the prefix: int, str, or tuple of int."""
    values: dict[str, Any] = {}
    for key, value in function.attrs.items() if function.attrs else ():
        if str(key).startswith("firmline."):
            values[str(key).removeprefix("firmline.")] = _python(value)
    return values


def operator_calls(module: IRModule) -> Iterator[OperatorCall]:
    """Yield the operators in the order of execution."""
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Call) and isinstance(value.op, ir.GlobalVar):
                function = module[value.op]
                values = attributes(function)
                yield OperatorCall(
                    binding.var,
                    value.op.name_hint,
                    function,
                    tuple(value.args),
                    values["index"],
                    values["op"],
                    values["name"],
                    values["inputs"],
                    values["outputs"],
                )


def operands_of(call: relax.Call) -> list[relax.Expr]:
    """Tensor operands of a call, also those inside tuples; no sizes, bounds and shapes."""
    from tvm.ir.expr import GenericConst

    operands = []
    for argument in call.args:
        for operand in argument.fields if isinstance(argument, relax.Tuple) else [argument]:
            if isinstance(operand, relax.Var | GenericConst | relax.Call):
                operands.append(operand)
    return operands


def build_function(
    name: str, parameters: Sequence[relax.Var], body: Callable[[relax.BlockBuilder], relax.Expr]
) -> relax.Function:
    """Build a private function of one dataflow block.

    `body` emits into the builder and returns the result. Its exceptions are raised after the builder is closed: TVM
    warns about unfinished builders.
    """
    builder, failure = relax.BlockBuilder(), None
    with builder.function(name, list(parameters), private=True):
        with builder.dataflow():
            try:
                returned = body(builder)
            except Exception as error:
                returned, failure = relax.const(0), error
            result = builder.emit_output(returned)
        builder.emit_func_output(result)
    if failure is not None:
        raise failure
    return builder.get()[name]


@dataclass(frozen=True)
class Step:
    """A planned call in `main`: `arguments` and `results` are names of values."""

    symbol: GlobalVar
    arguments: tuple[str, ...]
    results: tuple[str, ...]


def build_main(
    builder: relax.BlockBuilder,
    inputs: Mapping[str, relax.TensorType],
    steps: Sequence[Step],
    outputs: Sequence[str],
    facts: Mapping[str, Any],
) -> IRModule:
    """Add `main` with one call per step to the functions in `builder`.

    `facts` are its attributes. Steps with several results return a tuple, which is unpacked. Several outputs are
    returned as a tuple.
    """
    values: dict[str, relax.Expr] = {name: relax.Var(name, type_) for name, type_ in inputs.items()}
    with builder.function("main", [values[name] for name in inputs]):
        with builder.dataflow():
            for step in steps:
                call = relax.Call(step.symbol, [values[name] for name in step.arguments])
                if len(step.results) == 1:
                    values[step.results[0]] = builder.emit(call, step.results[0])
                    continue
                results_tuple = builder.emit(call)
                for position, name in enumerate(step.results):
                    values[name] = builder.emit(relax.TupleGetItem(results_tuple, position), name)
            results = [values[name] for name in outputs]
            output = builder.emit_output(results[0] if len(results) == 1 else relax.Tuple(results))
        builder.emit_func_output(output)
    module = builder.get()
    module["main"] = module["main"].with_attrs(dict(facts))
    return module


def _in_call_order(module: IRModule) -> IRModule:
    order = ["main", *dict.fromkeys(call.symbol for call in operator_calls(module))]
    return tvm.IRModule({module.get_global_var(name): module[name] for name in order}, attrs=module.attrs)


def _python(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) or hasattr(value, "__int__"):
        return int(value)
    return tuple(_python(item) for item in value)
