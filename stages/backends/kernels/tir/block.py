"""Tile blocks: the unit that `Schedule.tensorize` replaces by a call of a C micro-kernel.

A `Block` states its meaning once, on buffers of the tile's own shape. From that one statement come

  desc       the meaning as TVM's tensor intrinsic wants it
  impl       the call of the C function
  instances  the blocks of the workload: `Function.place` puts the meaning on regions of the layer's buffers

TVM 0.27 has these limits:

  - It simplifies desc, but not the workload, before it compares them. So an instance is made from the simplified form.
  - It does not compare statements without effect, such as a sum in which no tap meets the image. So they are removed.
  - It compares expressions and plain loops, not IfThenElse statements or nested blocks. So conditions are expressions
    (`fixed_point.select`), and an accumulator is an operand: an int32 buffer of one element.
  - Variables of the surrounding loops cannot occur in a desc. If a tile needs its position (for a window that leaves
    the image), it reads it from an int32 operand, which the loop nest stores before the tile.
  - It proves indices equal without knowing that two buffers correspond. So a loaded value in an index must become a
    variable, of a loop with one iteration (`position`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, Self

from stages.backends.kernels.kernel import Intrinsic, Lowering
from stages.ir.layers.tensor import ITEM_BYTES
from stages.support.lazy import T, ir, ir_builder, tirx, tvm, tvm_ffi

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

Expr = Any  # a TIR expression or a Python int
Buffer = Any  # a TIR buffer (a Var of BufferType)


@dataclass(frozen=True)
class Operand:
    """A buffer of a block: the tile's shape, and whether the block reads or writes it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    access: Literal["r", "w", "rw"] = "r"


def accumulator(name: str = "acc") -> Operand:
    """Return the one-element int32 operand in which a meaning accumulates.

    C micro-kernels do not get it.
    """
    return Operand(name, (1,), "int32", "rw")


@contextmanager
def loop(*ranges: tuple[str, int]) -> Iterator[Any]:
    """Open nested loops `(name, extent)`, outermost first, and yield their variables.

    For one loop, the variable is not in a tuple.
    """
    with ExitStack() as stack:
        variables = tuple(stack.enter_context(_serial(name, extent)) for name, extent in ranges)
        yield variables[0] if len(variables) == 1 else variables


@contextmanager
def position(name: str, value: Expr) -> Iterator[Any]:
    """Return a loaded non-negative value as a variable that may occur in indices.

    It is the variable of a loop from `value` of (value >= 0) steps, because the simplifier would replace the variable
    of a loop that it knows to have one step.
    """
    with T.serial(value, value + T.Cast("int32", value >= 0)) as variable:
        ir_builder.IRBuilder.name(name, variable)
        yield variable


@contextmanager
def _serial(name: str, extent: int) -> Iterator[Any]:
    with T.serial(extent) as variable:
        ir_builder.IRBuilder.name(name, variable)
        yield variable


def store(buffer: Buffer, value: Expr, *indices: Expr) -> None:
    """Add the statement buffer[indices] = value to the function or meaning that is being built."""
    T.buffer_store(buffer, value, list(indices))


@dataclass(frozen=True)
class Block:
    """A block named `name`.

    meaning    builds the body; it gets the operands as attributes of one argument. None: the block is a call of
               `function` only, and the layer's `compute` is its reference (`Kernel.calls`)
    function   the C function that computes the block, '' for a block that stays TIR (data movement)
    arguments  the C function's arguments from the operands: a buffer stands for its pointer, anything else is a value
    """

    name: str
    operands: tuple[Operand, ...]
    meaning: Callable[[Any], None] | None
    function: str = ""
    arguments: Callable[[Any], Sequence[Any]] | None = None

    def desc(self) -> PrimFunc:
        """Return the block's meaning on buffers of the tile's shape."""
        meaning = self.meaning
        assert meaning is not None, self.name
        buffers = {operand.name: _tile_buffer(operand, strided=False) for operand in self.operands}
        return _simplify(self._function(buffers, lambda: meaning(SimpleNamespace(**buffers))))

    def impl(self) -> PrimFunc:
        """Return the call of the C function.

        Rows of a tile may be apart: all strides but the innermost are free.
        """
        assert self.arguments is not None, self.name
        buffers = {operand.name: _tile_buffer(operand, strided=True) for operand in self.operands}
        access = {operand.name: operand.access for operand in self.operands}

        def call() -> None:
            names = {id(buffer): name for name, buffer in buffers.items()}
            arguments = [
                value.access_ptr(access[names[id(value)]]) if id(value) in names else value
                for value in self.arguments(SimpleNamespace(**buffers))  # type: ignore[misc]  # as asserted above
            ]
            T.evaluate(T.call_extern("int32", self.function, *arguments))

        return self._function(buffers, call)

    def call(self, placed: dict[str, tuple[Buffer, tuple[Expr, ...]]]) -> None:
        """Call the C function on regions: a buffer and the first index of each operand."""
        assert self.arguments is not None, self.name
        pointers = {}
        for operand in self.operands:
            buffer, first = placed[operand.name]
            offset = sum(index * prod(buffer.shape[axis + 1 :]) for axis, index in enumerate(first))
            pointers[operand.name] = buffer.access_ptr(operand.access, offset=offset)
        T.evaluate(T.call_extern("int32", self.function, *self.arguments(SimpleNamespace(**pointers))))

    def intrinsic(self) -> Intrinsic:
        """Return TVM's tensor intrinsic: meaning and call."""
        return Intrinsic(self.name, self.desc(), self.impl())

    def _function(self, buffers: dict[str, Buffer], body: Callable[[], None]) -> PrimFunc:
        with ir_builder.IRBuilder() as builder, T.prim_func(s_tir=True):
            T.func_name(self.name)
            for name, buffer in buffers.items():
                T.arg(name, buffer)
            with T.sblock(self.name):
                self._accesses({name: (buffer, (0,) * len(buffer.shape)) for name, buffer in buffers.items()})
                body()
        return builder.get()

    def _accesses(self, regions: dict[str, tuple[Buffer, tuple[Expr, ...]]]) -> None:
        """Declare the regions that the block reads and writes.

        A region is a buffer and the tile's first index in it.
        """
        read, written = [], []
        for operand in self.operands:
            buffer, first = regions[operand.name]
            shape = (1,) * (len(first) - len(operand.shape)) + operand.shape
            ranges = [ir.Range.from_min_extent(index, extent) for index, extent in zip(first, shape, strict=True)]
            region = tirx.BufferRegion(buffer, ranges)
            if "r" in operand.access:
                read.append(region)
            if "w" in operand.access:
                written.append(region)
        T.reads(*read)
        T.writes(*written)


def _tile_buffer(operand: Operand, *, strided: bool) -> Buffer:
    rank = len(operand.shape)
    strides = [tirx.Var(f"{operand.name}_stride{axis}", "int32") for axis in range(rank - 1)] + [1] if strided else None
    return T.buffer(operand.shape, operand.dtype, offset_factor=1, strides=strides if rank > 1 else None, layout=None)


def _simplify(function: PrimFunc) -> PrimFunc:
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    simple = tirx.transform.StmtSimplify()(module)
    return tirx.transform.RemoveNoOp()(simple)["main"]


class _Declared(Exception):
    """Ends a lowering after the declarations of its buffers."""


_declared: ContextVar[dict[str, int] | None] = ContextVar("declared", default=None)  # bytes by name


def declared_scratch(lower: Callable[[], Lowering]) -> dict[str, int] | None:
    """Return the bytes by name of the scratch that `lower` declares.

    Ending `lower` before it builds loops takes a hundredth of the time of a lowering. Single elements become C
    variables. None if `lower` uses no `Function`.
    """
    declared: dict[str, int] = {}
    token = _declared.set(declared)
    try:
        lower()
    except _Declared:
        return declared
    finally:
        _declared.reset(token)
    return None


class Function:
    """Builder of a layer's workload: `with Function("layer") as f: ...`, then `f.lowering()`.

    Buffers are declared first, in the order of the roles; then loops and blocks follow.
    """

    def __init__(self, name: str) -> None:
        self._builder = ir_builder.IRBuilder()
        self._stack = ExitStack()
        self._name = name
        self._roles: list[str] = []
        self._loops: list[tuple[Any, int]] = []
        self._blocks: dict[str, Block] = {}

    def __enter__(self) -> Self:
        self._stack.enter_context(self._builder)
        self._stack.enter_context(T.prim_func(s_tir=True))
        T.func_name(self._name)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def input(self, number: int, shape: Sequence[int], dtype: str) -> Buffer:
        """Declare data input `number`."""
        return self._parameter(f"input:{number}", f"input{number}", shape, dtype)

    def output(self, number: int, shape: Sequence[int], dtype: str) -> Buffer:
        """Declare output `number`."""
        return self._parameter(f"output:{number}", f"output{number}", shape, dtype)

    def constant(self, key: str, shape: Sequence[int], dtype: str) -> Buffer:
        """Declare the constant with this role."""
        return self._parameter(f"constant:{key}", key, shape, dtype)

    def scratch(self, name: str, shape: Sequence[int], dtype: str) -> Buffer:
        """Return a buffer of the function. It becomes a part of the arena."""
        if (declared := _declared.get()) is not None and prod(shape) > 1:
            declared[name] = prod(shape) * ITEM_BYTES[dtype]
        buffer = T.sblock_alloc_buffer(tuple(shape), dtype)
        ir_builder.IRBuilder.name(name, buffer)
        return buffer

    def _parameter(self, role: str, name: str, shape: Sequence[int], dtype: str) -> Buffer:
        self._roles.append(role)
        return T.arg(name, T.buffer(tuple(shape), dtype))

    @contextmanager
    def loop(self, *ranges: tuple[str, int]) -> Iterator[tuple[Any, ...]]:
        """Open nested loops and yield their variables.

        Each block inside gets one spatial axis per loop.
        """
        if _declared.get() is not None:
            raise _Declared
        with ExitStack() as stack:
            variables = tuple(stack.enter_context(_serial(name, extent)) for name, extent in ranges)
            outside = list(self._loops)
            self._loops += zip(variables, (extent for _, extent in ranges), strict=True)
            yield variables
            self._loops = outside

    def place(self, block: Block, **regions: Any) -> None:
        """Put `block` here. Each operand gets a buffer, or (buffer, first index of the tile).

        An index may be any expression of the surrounding loops' variables. Blocks with the same name must be equal.
        """
        if self._blocks.setdefault(block.name, block) is not block:
            raise ValueError(f"{self._name} has two different blocks named {block.name}")
        if not self._loops:  # a block without loops around it would be the root block, which TVM does not tensorize
            with self.loop(("once", 1)):
                self.place(block, **regions)
            return
        with T.sblock(block.name):
            axes = {variable: T.axis.spatial(extent, variable) for variable, extent in self._loops}
            for variable, axis in axes.items():
                ir_builder.IRBuilder.name(variable.name, axis)
            placed = {}
            for operand in block.operands:
                region = regions[operand.name]
                buffer, *first = region if isinstance(region, tuple) else (region,)
                first = first or [0] * len(buffer.shape)
                placed[operand.name] = (buffer, tuple(_substitute(index, axes) for index in first))
            block._accesses(placed)
            if block.meaning is None:
                block.call(placed)
            else:
                T.add_to_parent(_on_regions(block.desc(), block.operands, placed))

    def call(self, function: str, *arguments: tuple[Buffer, str] | int) -> None:
        """Call a C function on whole buffers, `(buffer, access)`, and integers.

        Use it for functions that would be too long in TIR, such as an FFT. The layer's `compute` is their reference.
        """
        regions: dict[str, list[Any]] = {"r": [], "w": []}
        for buffer, access in (argument for argument in arguments if isinstance(argument, tuple)):
            region = tirx.BufferRegion(buffer, [ir.Range.from_min_extent(0, size) for size in buffer.shape])
            for kind in access:
                regions[kind].append(region)
        with self.loop(("once", 1)) as (once,), T.sblock(function):
            T.axis.spatial(1, once)
            T.reads(*regions["r"])
            T.writes(*regions["w"])
            pointers = [a[0].access_ptr(a[1]) if isinstance(a, tuple) else a for a in arguments]
            T.evaluate(T.call_extern("int32", function, *pointers))

    def set_position(self, name: str, buffer: Buffer, value: Expr) -> None:
        """Store buffer[0] for `position`.

        `value` is an expression of the surrounding loops' variables.
        """
        with T.sblock(name):
            axes = {variable: T.axis.spatial(extent, variable) for variable, extent in self._loops}
            T.reads()
            T.writes(buffer[0:1])
            store(buffer, _substitute(value, axes), 0)

    def lowering(self) -> Lowering:
        """Return the finished function with the roles of its parameters."""
        intrinsics = [block.intrinsic() for block in self._blocks.values() if block.function and block.meaning]
        return Lowering(self._builder.get(), tuple(self._roles), intrinsics)


def over_images(function: str, block: Block, images: int) -> Lowering:
    """Return a layer that is `block` for each image.

    Its operands are x and y of an image, constants, which it reads, and scratch, which it writes.
    """
    operands = {operand.name: operand for operand in block.operands}
    x, y = operands.pop("x"), operands.pop("y")
    with Function(function) as f:
        image = f.input(0, (images, *x.shape), x.dtype)
        given = {o.name: f.constant(o.name, o.shape, o.dtype) for o in operands.values() if o.access == "r"}
        out = f.output(0, (images, *y.shape), y.dtype)
        given |= {o.name: f.scratch(o.name, o.shape, o.dtype) for o in reversed(operands.values()) if o.access != "r"}
        with f.loop(("n", images)) as (n,):
            first = (n, 0, 0, 0)
            f.place(block, x=(image, *first), y=(out, *first), **given)
    return f.lowering()


def _substitute(value: Expr, axes: dict[Any, Any]) -> Expr:
    """Return `value` with each loop variable replaced by its block axis."""
    if isinstance(value, int):
        return value

    def replace(variable: Any) -> Any:
        for old, new in axes.items():
            if variable.same_as(old):
                return new
        return variable

    return tvm_ffi.structural_map(value, (tirx.Var, replace))


def _on_regions(desc: PrimFunc, operands: Sequence[Operand], placed: dict[str, Any]) -> Any:
    """Return the body of a desc with each operand moved onto its region."""
    body = desc.body.block.body if hasattr(desc.body, "block") else desc.body
    parameters = list(zip(desc.params, operands, strict=True))

    def moved(buffer: Any, indices: Sequence[Any]) -> tuple[Any, list[Any]] | None:
        for parameter, operand in parameters:
            if buffer.same_as(parameter):
                target, first = placed[operand.name]
                lead = len(first) - len(operand.shape)
                return target, list(first[:lead]) + [a + b for a, b in zip(first[lead:], indices, strict=True)]
        return None

    def load(node: Any) -> Any:
        access = moved(node.source, node.indices)
        return node if access is None else tirx.BufferLoad(*access)

    def stored(node: Any) -> Any:
        access = moved(node.buffer, node.indices)
        return node if access is None else tirx.BufferStore(access[0], node.value, access[1])

    return tvm_ffi.structural_map(body, [(ir.TensorLoad, load), (tirx.BufferStore, stored)])
