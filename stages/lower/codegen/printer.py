"""Print lowered TIR (lower.py), loops over plain pointers, as C for people to read.

Repeated operands of min and max become temporaries. A choice of which only one side may be evaluated becomes an if
statement. TIR without a C equivalent is an internal error, never wrong C.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stages.lower.codegen import expression as c
from stages.lower.codegen.expression import C
from stages.lower.codegen.floats import is_in_math_header, literal, math_function
from stages.lower.codegen.names import Names
from stages.lower.codegen.scalars import Element, Scalars
from stages.lower.codegen.temporaries import Scope, Temporary
from stages.lower.codegen.widths import calls_functions, is_within_int32
from stages.support.lazy import tirx, tvm_ffi

Body = str
_CTYPES = {"bool": "bool", "float32": "float", "float64": "double"}
_INT64_MIN = -(1 << 63)
_RETURNS_ITS_ARGUMENT = ("memcpy(", "memmove(", "memset(")
_OPERATORS = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "LShift": "<<", "RShift": ">>",
    "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!=", "And": "&&", "Or": "||",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
}  # fmt: skip


def ctype(dtype: str) -> str:
    """Return the C type of an element: int8_t, float, ..."""
    return _CTYPES.get(dtype, f"{dtype}_t")


@dataclass(frozen=True)
class Printed:
    """A function's parameter names in C, its body, the parameters it uses, and its headers."""

    parameters: tuple[str, ...]
    body: Body
    used: frozenset[str]
    headers: frozenset[str]


def print_function(func: Any) -> Printed:
    """Print a function over pointers. Raises RuntimeError for TIR without a C equivalent."""
    printer = _Printer(func)
    return Printed(tuple(printer.parameters), printer.body(), frozenset(printer.used), frozenset(printer.headers))


class _Printer:
    """Prints one function."""

    def __init__(self, func: Any) -> None:
        self._func = func
        self._names = Names()
        self._of: dict[int, str] = {}  # C names by identity of variables and buffers
        self._plain: set[str] = set()  # variables that are assigned once
        self._lines: list[str] = []
        self._depth = 1
        self._scopes = [Scope()]
        self._reads: list[set[str]] = [set()]
        self.used: set[str] = set()
        self.headers: set[str] = set()
        self.parameters = [self._name(parameter) for parameter in func.params]
        self._scalars = Scalars(func.body)
        self._is_chosen = False  # whether a choice among values is printed (is_within_int32)
        self._variables: dict[tuple[int, int], str] = {}

    def body(self) -> Body:
        """Return the function's body."""
        self._statement(self._func.body)
        lines = [line for buffer in reversed(self._scalars.buffers) for line in self._declarations(buffer)]
        return "".join(f"{line}\n" for line in lines + self._lines)

    # ---- names -------------------------------------------------------------------------------------------------

    def _name(self, variable: Any) -> str:
        name = self._names.new(variable.name)
        self._of[hash(variable)] = name
        return name

    def _type(self, dtype: Any) -> str:
        if str(dtype) == "bool":
            self.headers.add("<stdbool.h>")
        return ctype(str(dtype))

    def _name_elements(self, buffer: Any) -> None:
        """Name the elements of an allocation: `sum`, or `sum_0`, `sum_1`, ... if there are several."""
        several = any(int(extent) != 1 for extent in buffer.shape)
        name = self._names.new(buffer.name)
        for index in sorted(self._scalars.used[hash(buffer)]):
            self._variables[hash(buffer), index] = self._names.new(f"{name}_{index}") if several else name

    def _declarations(self, buffer: int) -> Iterator[str]:
        for element in [(buffer, index) for index in sorted(self._scalars.used[buffer])]:
            if not self._scalars.is_dead(element):
                yield f"    {self._kind(element)} {self._variables[element]};"

    def _kind(self, element: Element) -> str:
        """Return the C type of an element's variable (stages.lower.codegen.widths)."""
        dtype = self._scalars.buffers[element[0]].dtype
        return "intptr_t" if self._scalars.is_extreme(element) else self._type(dtype)

    # ---- statements --------------------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def _block(self) -> Iterator[None]:
        self._depth += 1
        self._scopes.append(Scope())
        yield
        self._scopes.pop()
        self._depth -= 1

    def _statement(self, node: Any) -> None:
        kind = type(node).__name__
        printer: Callable[[Any], None] | None = getattr(self, f"_stmt_{kind}", None)
        if printer is None:
            raise RuntimeError(f"internal error: no C for the TIR statement {kind}")
        printer(node)

    def _stmt_SeqStmt(self, node: Any) -> None:
        for statement in node.seq:
            self._statement(statement)

    def _stmt_AllocBuffer(self, node: Any) -> None:
        self._name_elements(node.buffer)

    def _stmt_DeclBuffer(self, node: Any) -> None:
        if hash(node.buffer) != hash(node.data):
            self._of[hash(node.buffer)] = self._pointer(node.data)

    def _stmt_AttrStmt(self, node: Any) -> None:
        self._statement(node.body)

    def _stmt_Bind(self, node: Any) -> None:
        value = self._expr(node.value)
        name = self._name(node.var)
        self._plain.add(name)
        self._line(f"{self._type(node.var.ty.dtype)} {name} = {value.text};")

    def _stmt_For(self, node: Any) -> None:
        if int(node.kind) != 0:
            raise RuntimeError(f"internal error: a loop over {node.loop_var.name} is not serial")
        start = self._expr(node.min)
        end = node.extent if start.text == "0" else _simplified(tirx.Add(node.min, node.extent))
        stop = self._expr(end)
        name = self._name(node.loop_var)
        self._plain.add(name)
        step = f"++{name}" if node.step is None else f"{name} += {self._expr(node.step).text}"
        kind = self._loop_kind(node)
        self._line(f"for ({kind} {name} = {start.text}; {c.binary(C(name), '<', stop).text}; {step}) {{")
        self._forget(self._stored(node.body))
        with self._block():
            self._statement(node.body)
        self._line("}")

    def _loop_kind(self, node: Any) -> str:
        """Return the C type of a loop variable (stages.lower.codegen.widths)."""
        kind = self._type(node.loop_var.ty.dtype)
        return "intptr_t" if kind == "int32_t" and not calls_functions(node.body) else kind

    def _stmt_IfThenElse(self, node: Any) -> None:
        self._line(f"if ({self._expr(node.condition).text}) {{")
        with self._block():
            self._statement(node.then_case)
        if node.else_case is not None:
            self._line("} else {")
            with self._block():
                self._statement(node.else_case)
        self._line("}")

    def _stmt_Evaluate(self, node: Any) -> None:
        if isinstance(node.value, tirx.IntImm):
            return
        value = self._expr(node.value).text
        ignored = "(void)" if value.startswith(_RETURNS_ITS_ARGUMENT) else ""
        self._line(f"{ignored}{value};")
        self._forget(None)

    def _stmt_BufferStore(self, node: Any) -> None:
        element = self._scalars.element(node.buffer, node.indices)
        if element is not None:
            if self._scalars.is_dead(element):
                return
            target = self._variables[element]
            stored = target
        else:
            stored = self._array(node.buffer)
            target = c.element(stored, self._expr(node.indices[0])).text
        self._line(c.assignment(target, self._chosen(node.value)))
        self._forget({stored})

    # ---- temporaries -------------------------------------------------------------------------------------------

    def _stored(self, body: Any) -> set[str] | None:
        """Return the arrays and variables that a statement assigns; None if they are unknown."""
        names: set[str] = set()
        unknown: list[bool] = []

        def visit(node: Any) -> None:
            if isinstance(node, tirx.BufferStore):
                element = self._scalars.element(node.buffer, node.indices)
                if element in self._variables:
                    names.add(self._variables[element])
                elif element is None:  # a buffer that is declared inside has no name yet
                    unknown.append(hash(node.buffer) not in self._of)
                    names.add(self._of.get(hash(node.buffer), ""))
            elif isinstance(node, tirx.Evaluate):
                unknown.append(not isinstance(node.value, tirx.IntImm))

        tvm_ffi.structural_walk(body, visit)
        return None if any(unknown) else names

    def _forget(self, stored: set[str] | None) -> None:
        """Invalidate temporaries that read a name in `stored`; None: all that read memory."""
        for scope in self._scopes:
            scope.forget(stored)

    def _once(self, value: Any) -> C:
        """Return the value as an expression that may be printed several times."""
        self._reads.append(set())
        node = self._expr(value)
        reads = self._reads.pop()
        self._reads[-1] |= reads
        if node.text in self._plain or isinstance(value, tirx.IntImm | tirx.FloatImm) or self._is_extreme(value):
            return node
        for scope in self._scopes:
            if node.text in scope.temporaries:
                return C(scope.temporaries[node.text].name)
        name = self._names.temporary()
        self._plain.add(name)
        self._scopes[-1].temporaries[node.text] = Temporary(name, frozenset(reads))
        self._line(f"{self._type(value.ty.dtype)} {name} = {node.text};")
        return C(name)

    def _is_extreme(self, value: Any) -> bool:
        """Return whether a choice reads a register-wide variable, which nothing assigns before."""
        from tvm.ir import TensorLoad

        if not self._is_chosen or not isinstance(value, TensorLoad):
            return False
        element = self._scalars.element(value.source, value.indices)
        return element is not None and self._scalars.is_extreme(element)

    # ---- expressions -------------------------------------------------------------------------------------------

    def _pointer(self, buffer: Any) -> str:
        from tvm.ir import Call

        if isinstance(buffer, Call) and getattr(buffer.op, "name", "") == "tirx.buffer_data":
            return self._pointer(buffer.args[0])
        if hash(buffer) not in self._of:
            raise RuntimeError(f"internal error: {buffer} is no pointer of the function")
        return self._of[hash(buffer)]

    def _array(self, buffer: Any) -> str:
        """Return the name of an array, and record its use."""
        name = self._pointer(buffer)
        if name in self.parameters:
            self.used.add(name)
        return name

    def _expr(self, node: Any) -> C:
        before, self._is_chosen = self._is_chosen, self._is_chosen and is_within_int32(node)
        try:
            return self._printed(node)
        finally:
            self._is_chosen = before

    def _chosen(self, node: Any) -> C:
        """Print a stored value; in a choice among values, register-wide variables stay so."""
        self._is_chosen = True
        try:
            return self._expr(node)
        finally:
            self._is_chosen = False

    def _printed(self, node: Any) -> C:
        kind = type(node).__name__
        if kind in _OPERATORS:
            return c.binary(self._expr(node.a), _OPERATORS[kind], self._expr(node.b))
        printer: Callable[[Any], C] | None = getattr(self, f"_expr_{kind}", None)
        if printer is None:
            raise RuntimeError(f"internal error: no C for the TIR expression {kind}")
        return printer(node)

    def _expr_Var(self, node: Any) -> C:
        return C(self._array(node))

    def _expr_IntImm(self, node: Any) -> C:
        if int(node.value) == _INT64_MIN:
            return C("INT64_MIN")  # C has no such literal: 9223372036854775808 has no type
        dtype, number = str(node.ty.dtype), c.number(str(int(node.value)))
        if dtype == "bool":
            self.headers.add("<stdbool.h>")
        return number if dtype == "int32" else c.cast(ctype(dtype), number)

    def _expr_FloatImm(self, node: Any) -> C:
        text = literal(float(node.value), str(node.ty.dtype))
        if is_in_math_header(text.lstrip("-")):
            self.headers.add("<math.h>")
        return c.number(text)

    def _expr_Cast(self, node: Any) -> C:
        value = self._expr(node.value)
        same = str(node.ty.dtype) == str(node.value.ty.dtype)
        return value if same else c.cast(self._type(node.ty.dtype), value)

    def _expr_Not(self, node: Any) -> C:
        return c.negated(self._expr(node.a))

    def _expr_Select(self, node: Any) -> C:
        return c.choice(self._expr(node.condition), self._expr(node.true_value), self._expr(node.false_value))

    def _expr_Min(self, node: Any) -> C:
        a, b = self._once(node.a), self._once(node.b)
        return c.choice(c.binary(a, "<", b), a, b)

    def _expr_Max(self, node: Any) -> C:
        a, b = self._once(node.a), self._once(node.b)
        return c.choice(c.binary(a, ">", b), a, b)

    def _expr_Let(self, node: Any) -> C:
        value = self._once(node.value)
        self._of[hash(node.var)] = value.text
        return self._expr(node.body)

    def _expr_TensorLoad(self, node: Any) -> C:
        element = self._scalars.element(node.source, node.indices)
        if element is not None:
            self._reads[-1].add(self._variables[element])
            variable = C(self._variables[element])
            is_wide = self._scalars.is_extreme(element) and not self._is_chosen
            return c.cast("int32_t", variable) if is_wide else variable
        array = self._array(node.source)
        self._reads[-1].add(array)
        return c.element(array, self._expr(node.indices[0]))

    def _expr_Call(self, node: Any) -> C:
        name = getattr(node.op, "name", "")
        if name in ("tirx.call_extern", "tirx.call_pure_extern"):
            function = str(node.args[0].value)
            if is_in_math_header(function):
                self.headers.add("<math.h>")
            elif name == "tirx.call_pure_extern":  # call_extern: a micro-kernel, declared in its header
                raise RuntimeError(
                    f"internal error: the C function {function} is not declared in stages/lower/codegen/floats.py"
                )
            return c.call(function, [self._expr(argument) for argument in node.args[1:]])
        if name == "tirx.address_of":
            load = node.args[0]
            return c.address(self._array(load.source), self._expr(load.indices[0]))
        if name == "tirx.buffer_data":
            return C(self._array(node))
        if name == "prim.if_then_else":
            return self._choice(*node.args, dtype=node.ty.dtype)
        if (of_c := math_function(name, str(node.ty.dtype))) is not None:
            self.headers.add("<math.h>")
            return c.call(of_c, [self._expr(argument) for argument in node.args])
        raise RuntimeError(f"internal error: no C for the TIR operation {name}")

    def _choice(self, condition: Any, yes: Any, no: Any, *, dtype: Any) -> C:
        """Print an if statement that assigns one of two values, so that it may guard a load."""
        result = self._names.new("condval")
        self._plain.add(result)
        test = self._expr(condition)
        self._line(f"{self._type(dtype)} {result};")
        self._line(f"if ({test.text}) {{")
        for number, value in enumerate((yes, no)):
            if number:
                self._line("} else {")
            with self._block():
                self._line(c.assignment(result, self._expr(value)))
        self._line("}")
        return C(result)


def _simplified(value: Any) -> Any:
    from tvm.sym.analyzer import Analyzer

    return Analyzer().simplify(value)
