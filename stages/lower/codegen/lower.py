"""Scheduled TIR to functions over raw pointers, printed as C.

TVM's C backend would print buffers as handles of its runtime, and each allocation as an array on the stack. So the
passes below stop before its calling convention, and then

  - a buffer parameter becomes a plain pointer parameter, named after its role (`input`, `weights`, `output`, ...)
  - an allocation becomes a pointer parameter too, `scratch`, which the arena places; only allocations with constant
    indices stay in the function, as variables
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.lower.codegen.printer import Body, print_function
from stages.support.lazy import s_tir, tirx, tvm, tvm_ffi

SCALARS_AT_MOST = 64
"""Maximum elements of an allocation that becomes scalar variables; larger ones are scratch."""


@dataclass(frozen=True)
class Param:
    """A pointer parameter: element type `dtype`, and `bytes` of the memory.

    `role` is `input:0`, `output:0`, `state:0`, `constant:<key>` or `scratch:<name>`.
    """

    name: str
    role: str
    dtype: str
    bytes: int


@dataclass(frozen=True)
class CFunction:
    """A printed function: parameters in order, and the body without braces.

    used     names of the parameters that the body mentions
    headers  C library headers that it includes
    floats   attribute of the PrimFunc (stages.tensorize.float_vectors), or ''
    """

    name: str
    params: tuple[Param, ...]
    body: Body
    used: frozenset[str]
    headers: frozenset[str] = frozenset()
    floats: str = ""


def to_c(functions: Mapping[str, Any], roles: Mapping[str, Sequence[str]]) -> dict[str, CFunction]:
    """Print each PrimFunc as C, by name.

    `roles[name]` are the roles of its buffer parameters, in order. Raises RuntimeError with the function's name for TIR
    without a C equivalent (an internal error).
    """
    target = tvm.target.Target("c")
    out = {}
    for name, lowered in _lower(functions, target).items():
        func, params = _raw_pointers(lowered, name, roles[name])
        module = tvm.IRModule({"main": func.with_attr("target", target)})
        printed = print_function(tirx.transform.LowerIntrin()(module)["main"])
        named = tuple(Param(n, p.role, p.dtype, p.bytes) for n, p in zip(printed.parameters, params, strict=True))
        floats = str((functions[name].attrs or {}).get("floats", ""))
        out[name] = CFunction(name, named, printed.body, printed.used, printed.headers, floats)
    return {name: out[name] for name in functions}


def _lower(functions: Mapping[str, Any], target: Any) -> dict[str, Any]:
    """Lower the functions: no blocks, no multi-dimensional buffers, no 64-bit indices."""
    passes = tvm.ir.transform.Sequential(
        [
            tirx.transform.BindTarget(target.with_host(target)),
            s_tir.transform.CanonicalizeLoop(),
            s_tir.transform.LowerInitBlock(),
            s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
            s_tir.transform.ConvertBlocksToOpaque(),
            s_tir.transform.CompactBufferAllocation(),
            s_tir.transform.LowerMatchBuffer(),
            s_tir.transform.StmtSimplify(),
            s_tir.transform.LowerOpaqueBlock(),
            tirx.transform.FlattenBuffer(),
            # StorageRewrite before LoopPartition, so that the parts of a loop share allocations; LoopPartition before
            # NarrowDataType, which loses the loops' hints.
            tirx.transform.StorageRewrite(),
            s_tir.transform.LoopPartition(),
            tirx.transform.NarrowDataType(32),
            tirx.transform.VectorizeLoop(False),
            tirx.transform.UnrollLoop(),
            tirx.transform.StmtSimplify(),
            tirx.transform.RemoveNoOp(),
        ]
    )
    module = tvm.IRModule({tvm.ir.GlobalVar(name): func for name, func in functions.items()})
    lowered = passes(module)
    return {var.name_hint: func for var, func in lowered.functions.items()}


def _raw_pointers(func: Any, name: str, roles: Sequence[str]) -> tuple[Any, tuple[Param, ...]]:
    """Replace buffers and allocations by pointers; return the function and its parameters."""
    from tvm.ir import Call

    if len(func.params) != len(roles):
        raise RuntimeError(f"internal error: {name} has {len(func.params)} parameters and {len(roles)} roles")
    data_of = tvm.get_global_func("tirx.BufferData")
    buffers = list(func.params)
    merged = {role: _param(buffer, role) for buffer, role in zip(buffers, roles, strict=True)}
    of_role = {role: tirx.Var(merged[role].name, data_of(b).ty) for b, role in zip(buffers, roles, strict=True)}
    pointers, params = [of_role[role] for role in roles], [*merged.values()]  # parameters of one role become one

    def to_pointer(node: Any) -> Any:
        if isinstance(node, Call) and getattr(node.op, "name", "") == "tirx.buffer_data":
            for buffer, pointer in zip(buffers, pointers, strict=True):
                if node.args[0].same_as(buffer):
                    return pointer
        return node

    body = tvm_ffi.structural_map(func.body, to_pointer)
    names = set(roles)
    hoisted: dict[Any, Any] = {}
    for buffer in _scratch(body):
        params.append(_param(buffer, _unique(f"scratch:{buffer.name}", names)))
        hoisted[buffer] = of_role[params[-1].role] = tirx.Var(params[-1].name, data_of(buffer).ty)

    def to_declaration(node: Any) -> Any:
        if isinstance(node, tirx.AllocBuffer):
            for buffer, pointer in hoisted.items():
                if node.buffer.same_as(buffer):
                    return tirx.DeclBuffer(buffer, data=pointer)
        return node

    if hoisted:
        body = tvm_ffi.structural_map(body, to_declaration)
    return tirx.PrimFunc([*of_role.values()], body), tuple(params)


def _unique(role: str, names: set[str]) -> str:
    name, number = role, 1
    while name in names:
        name, number = f"{role}_{number}", number + 1
    names.add(name)
    return name


def _param(buffer: Any, role: str) -> Param:
    kind, _, key = role.partition(":")
    name = key if kind in ("constant", "scratch") else (kind if key == "0" else f"{kind}{key}")
    return Param(_identifier(name), role, str(buffer.dtype), _elements(buffer) * _item_bytes(str(buffer.dtype)))


def _identifier(name: str) -> str:
    clean = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return clean if clean[:1].isalpha() else f"v{clean}"


def _elements(buffer: Any) -> int:
    count = 1
    for extent in buffer.shape:
        count *= int(extent)
    return count


def _item_bytes(dtype: str) -> int:
    return {"bool": 1}.get(dtype) or int(dtype.lstrip("uintfloa")) // 8


def _scratch(body: Any) -> list[Any]:
    """Return allocations that need memory: large, addressed, or used with a variable index."""
    from tvm.ir import Call, TensorLoad

    allocated: list[Any] = []
    in_memory: list[Any] = []

    def constant(indices: Iterable[Any]) -> bool:
        return all(isinstance(index, tirx.IntImm) for index in indices)

    def visit(node: Any) -> None:
        if isinstance(node, tirx.AllocBuffer):
            allocated.append(node.buffer)
            if _elements(node.buffer) > SCALARS_AT_MOST:
                in_memory.append(node.buffer)
        elif isinstance(node, tirx.BufferStore) and not constant(node.indices):
            in_memory.append(node.buffer)
        elif isinstance(node, TensorLoad) and not constant(node.indices):
            in_memory.append(node.source)
        elif isinstance(node, Call):
            for argument in node.args:
                in_memory.append(argument.source if isinstance(argument, TensorLoad) and is_address(node) else argument)

    def is_address(call: Any) -> bool:
        return getattr(call.op, "name", "") == "tirx.address_of"

    tvm_ffi.structural_walk(body, visit)
    return [b for b in allocated if any(b.same_as(used) for used in in_memory)]
