"""The Relax module between import, layout and quantize: how it is kept, and how its functions are walked.

`main` calls one private function per imported operator. docs/maintainers/contracts.md lists their attributes.
tvm is imported inside the functions, so that importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm import IRModule, relax
    from tvm.ir import GlobalVar

FILE = "module.json"
LAYOUT, CONSTANT = "LAYOUT", "CONSTANT"  # steps that no file has: a transform, and an output that is a constant


def save_module(module: IRModule, folder: Path) -> None:
    """Writes `module.json`: TVM's own JSON, weights as base64 (40 MB of them take about a second).

    The same module gives the same bytes: functions are written in the order in which `main` calls them.
    """
    import tvm

    (folder / FILE).write_text(tvm.ir.save_json(_in_call_order(module)))


def load_module(folder: Path) -> IRModule:
    """Reads what `save_module` wrote. Raises ValueError when the file is not a Relax module."""
    import tvm

    module = tvm.ir.load_json((folder / FILE).read_text())
    if not isinstance(module, tvm.IRModule):
        raise ValueError(f"{folder / FILE} is not a Relax module")
    return module


@dataclass(frozen=True)
class OperatorCall:
    """One step of `main`: a call of an operator's function.

    index, op, name, inputs and outputs are the function's `firmline.*` attributes (tensor indices of the imported
    file). variable is what `main` binds the call to; arguments are variables of `main`, one for each parameter.
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
        """All `firmline.*` attributes, without the prefix, as Python values."""
        return attributes(self.function)


def attributes(function: relax.Function) -> dict[str, Any]:
    """The `firmline.*` attributes of a function, without the prefix: int, str, or tuple of int."""
    found: dict[str, Any] = {}
    for key, value in function.attrs.items() if function.attrs else ():
        if str(key).startswith("firmline."):
            found[str(key).removeprefix("firmline.")] = _python(value)
    return found


def operator_calls(module: IRModule) -> Iterator[OperatorCall]:
    """The operators in the order of execution."""
    from tvm import ir, relax

    for block in module["main"].body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Call) and isinstance(value.op, ir.GlobalVar):
                function = module[value.op]
                known = attributes(function)
                yield OperatorCall(
                    binding.var,
                    value.op.name_hint,
                    function,
                    tuple(value.args),
                    known["index"],
                    known["op"],
                    known["name"],
                    known["inputs"],
                    known["outputs"],
                )


def build_function(
    name: str, parameters: Sequence[relax.Var], body: Callable[[relax.BlockBuilder], relax.Expr]
) -> relax.Function:
    """A private function of one dataflow block; `body` emits into the builder it is given and returns the result.

    What `body` raises is raised after the builder is closed: TVM prints a warning when one is dropped unfinished.
    """
    from tvm import relax

    builder, failure = relax.BlockBuilder(), None
    with builder.function(name, list(parameters), private=True):
        with builder.dataflow():
            try:
                made = body(builder)
            except Exception as error:
                made, failure = relax.const(0), error
            result = builder.emit_output(made)
        builder.emit_func_output(result)
    if failure is not None:
        raise failure
    return builder.get()[name]


@dataclass(frozen=True)
class Step:
    """A call in `main` that is to be made: `arguments` and `results` are names of values."""

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
    """Adds `main` to the functions in `builder`: one call for each step. `facts` are its attributes.

    A step with several results returns a tuple, which is taken apart. Several outputs are returned as a tuple.
    """
    from tvm import relax

    values: dict[str, relax.Expr] = {name: relax.Var(name, type_) for name, type_ in inputs.items()}
    with builder.function("main", [values[name] for name in inputs]):
        with builder.dataflow():
            for step in steps:
                call = relax.Call(step.symbol, [values[name] for name in step.arguments])
                if len(step.results) == 1:
                    values[step.results[0]] = builder.emit(call, step.results[0])
                    continue
                made = builder.emit(call)
                for position, name in enumerate(step.results):
                    values[name] = builder.emit(relax.TupleGetItem(made, position), name)
            results = [values[name] for name in outputs]
            output = builder.emit_output(results[0] if len(results) == 1 else relax.Tuple(results))
        builder.emit_func_output(output)
    module = builder.get()
    module["main"] = module["main"].with_attrs(dict(facts))
    return module


def _in_call_order(module: IRModule) -> IRModule:
    import tvm

    order = ["main", *dict.fromkeys(call.symbol for call in operator_calls(module))]
    return tvm.IRModule({module.get_global_var(name): module[name] for name in order}, attrs=module.attrs)


def _python(value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) or hasattr(value, "__int__"):
        return int(value)
    return tuple(_python(item) for item in value)
