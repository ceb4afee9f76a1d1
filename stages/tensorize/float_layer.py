"""Lower float operators: Relax to TIR, scheduled for a core with or without vectors.

TVM may make several functions of one operator. They become the layer's steps, called in order. Values that pass
between them are scratch of the layer.
"""

from dataclasses import dataclass, field
from typing import Any

from stages.ir.arrays import Array
from stages.support.lazy import ir, np, relax, tvm
from stages.tensorize.float_product import SCALAR, FloatUnit
from stages.tensorize.float_schedule import schedule_float
from stages.tensorize.plan import Step


@dataclass
class FloatLowering:
    """`functions` by name in the order of `steps`, and `constants` by key."""

    functions: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    constants: dict[str, Array] = field(default_factory=dict)


def lower_float(function: Any, name: str, unit: FloatUnit = SCALAR) -> FloatLowering:
    """Lower a Relax function to scheduled PrimFuncs.

    They are called `name`, or `name`_step0, _step1, ... if there are several. Raises
    RuntimeError for a function that TVM does not legalize to TIR calls (an internal error: quantize accepts only known
    operators).
    """
    legal = _legalize(function)
    main = legal["main"]
    roles: dict[Any, tuple[str, ...]] = {param: (f"input:{i}",) for i, param in enumerate(main.params)}
    calls = _calls(main)
    _assign_outputs(main, calls, roles)
    lowering = FloatLowering()
    steps = []
    for position, (variable, call) in enumerate(calls):
        step = name if len(calls) == 1 else f"{name}_step{position}"
        arguments = [role for argument in call.args[1].fields for role in _role(argument, roles, lowering)]
        constants = {i: role for i, role in enumerate(arguments) if role.startswith("constant:")}
        finite = all(np.isfinite(lowering.constants[role.partition(":")[2]]).all() for role in constants.values())
        lowering.functions[step], packings = schedule_float(legal[call.args[0]], constants, unit, finite=finite)
        for packing in packings:
            key = constants[packing.param].partition(":")[2]
            lowering.constants[key] = packing.pack(lowering.constants[key])
        steps.append(Step(function=step, roles=(*arguments, *roles[variable])))
    lowering.steps = tuple(steps)
    return lowering


def _legalize(function: Any) -> Any:
    """Return a module whose `main` only calls TIR functions, with element-wise consumers fused."""
    passes = tvm.ir.transform.Sequential(
        [
            relax.transform.DecomposeOpsForInference(),
            relax.transform.CanonicalizeBindings(),
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FoldConstant(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
            relax.transform.DeadCodeElimination(["main"]),
        ]
    )
    # Dead code elimination would remove a private function.
    public = function.with_attr("global_symbol", "main")
    return passes(tvm.IRModule({"main": public}))


def _calls(main: Any) -> list[tuple[Any, Any]]:
    """Return (variable, call_tir) in order, without bindings that only rename."""
    call_tir = ir.Op.get("relax.call_tir")
    calls = []
    for block in main.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Call):
                if value.op != call_tir:
                    raise RuntimeError(f"internal error: float operator {value.op} was not legalized")
                calls.append((binding.var, value))
    return calls


def _renames(main: Any) -> list[tuple[Any, Any, int | None]]:
    """Return (variable, source, tuple element or None) of the bindings that only rename."""
    renames: list[tuple[Any, Any, int | None]] = []
    for block in main.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, ir.expr.TupleGetItem):
                renames.append((binding.var, value.tuple_value, int(value.index)))
            elif isinstance(value, relax.Var):
                renames.append((binding.var, value, None))
    return renames


def _assign_outputs(main: Any, calls: list[tuple[Any, Any]], roles: dict[Any, tuple[str, ...]]) -> None:
    """Assign roles to all variables: `output:i` for returned values, scratch for the others."""
    computed = dict(calls)
    stands_for = {variable: (source, element) for variable, source, element in _renames(main)}
    for number, (variable, _) in enumerate(calls):
        count = _arity(variable)
        roles[variable] = tuple(f"scratch:value{number}" + (f"_{i}" if count > 1 else "") for i in range(count))

    def origin(variable: Any) -> tuple[Any, int]:
        element = 0
        while variable in stands_for:
            variable, index = stands_for[variable]
            element = element if index is None else index
        return variable, element

    result = main.body.body
    source, _ = origin(result) if isinstance(result, relax.Var) else (result, 0)
    if source in computed and _arity(source) > 1:
        returned = [(source, i) for i in range(_arity(source))]
    else:
        fields = list(result.fields) if isinstance(result, ir.Tuple) else [result]
        returned = [origin(variable) for variable in fields]
    for number, (variable, element) in enumerate(returned):
        if variable not in computed:
            raise RuntimeError("internal error: a float layer returns its input unchanged")
        kept = list(roles[variable])
        kept[element] = f"output:{number}"
        roles[variable] = tuple(kept)
    for variable in stands_for:
        source, element = origin(variable)
        roles[variable] = (roles[source][element],) if source in roles else ()


def _arity(variable: Any) -> int:
    """Return the number of tensors of a variable."""
    fields = getattr(variable.ty, "fields", None)
    return 1 if fields is None else len(fields)


def _role(argument: Any, roles: dict[Any, tuple[str, ...]], lowering: FloatLowering) -> tuple[str, ...]:
    if isinstance(argument, ir.expr.GenericConst):
        key = f"c{len(lowering.constants)}"
        lowering.constants[key] = argument.value.numpy()
        return (f"constant:{key}",)
    return roles[argument]
