"""Sums of products that skip the padding of an image, instead of reading a padded copy.

A product with a padding element is 0 if the weight is finite. Sums begin with +0 and so are never -0, and adding 0 of
either sign to another number changes nothing. Skipping these products therefore changes no bit.

    for y, x/bx:
        for ry:
            if 0 <= y + ry - above < height:            once for all products of a row
                for rx, rc:
                    if 0 <= x + i + rx - left < width:  for each pixel of a block. Emit removes it from the blocks in
                        sum[i] += ...                   the middle of the image (TVM's LoopPartition)
"""

from typing import Any

from stages.support.lazy import ir, tirx, tvm_ffi

HINT = "pragma_loop_partition_hint"
"""Annotation of loops whose first and last passes LoopPartition separates."""


def is_padding(block: Any) -> bool:
    """Return whether a block (tirx.SBlock) copies a buffer into one with zeros around it."""
    value: Any = getattr(block.body, "value", None)
    if len(block.reads) != 1 or not _is_choice(value):
        return False
    _, read, zero = value.args
    return type(read).__name__ in ("BufferLoad", "TensorLoad") and getattr(zero, "value", None) == 0


def is_sum(block: Any) -> bool:
    """Return whether a block adds to its stored result."""
    value: Any = getattr(block.body, "value", None)
    return type(value).__name__ == "Add" and str(value.ty.dtype) == "float32"


def without_padding(func: Any) -> Any:
    """Return the PrimFunc with conditions around products instead of padding.

    The function is scheduled. Its reductions read inlined padding.
    """
    from tvm.s_tir import SBlockRealize

    realize = func.body
    body = _Conditions().of(realize.block.body)
    return func.with_body(SBlockRealize(realize.iter_values, realize.predicate, _with_body(realize.block, body)))


def _is_choice(value: Any) -> bool:
    return str(getattr(getattr(value, "op", None), "name", "")).endswith("if_then_else")


def _with_body(block: Any, body: Any) -> Any:
    from tvm.s_tir import SBlock

    parts = (block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init)
    return SBlock(*parts, block.alloc_buffers, block.match_buffers, block.annotations)


class _Conditions:
    """Rewrites a statement from the inside out.

    pending  conditions of the statement just rewritten
    blocked  variables of conditions on the pixels of a block
    hinted   those of `blocked` that LoopPartition may use: loops around the whole reduction
    """

    def __init__(self) -> None:
        from tvm.sym.analyzer import Analyzer

        self.pending: list[Any] = []
        self.blocked: list[Any] = []
        self.hinted: list[Any] = []
        self.analyzer = Analyzer()

    def of(self, statement: Any) -> Any:
        """Return the statement with conditions in place of choices."""
        from tvm.s_tir import SBlockRealize

        kind = type(statement).__name__
        if kind == "SeqStmt":
            parts = [self._within(self.of(part), lambda _: True) for part in statement.seq]
            self.hinted, self.blocked = [*self.hinted, *self.blocked], []
            return tirx.SeqStmt(parts)
        if kind == "SBlockRealize":
            body = self._without_choice(statement)
            return SBlockRealize(statement.iter_values, statement.predicate, _with_body(statement.block, body))
        return self._loop(statement) if kind == "For" else statement

    def _loop(self, loop: Any) -> Any:
        self.analyzer.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent))
        body, is_block = self.of(loop.body), loop.kind == tirx.ForKind.UNROLLED
        if is_block:
            pixels = [condition for condition in self.pending if _mentions(condition, loop.loop_var)]
            self.blocked += [variable for condition in pixels for variable in _variables(condition)]
        body = self._within(body, lambda condition: _mentions(condition, loop.loop_var), likely=is_block)
        annotations = dict(loop.annotations)
        if any(loop.loop_var.same_as(variable) for variable in self.hinted):
            annotations[HINT] = 1
        return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, None, annotations)

    def _within(self, statement: Any, fits: Any, likely: bool = False) -> Any:
        """Return the statement under the pending conditions that fit."""
        conditions = [condition for condition in self.pending if fits(condition)]
        self.pending = [condition for condition in self.pending if not fits(condition)]
        for condition in reversed(conditions):
            statement = tirx.IfThenElse(tirx.likely(condition) if likely else condition, statement, None)
        return statement

    def _without_choice(self, realize: Any) -> Any:
        """Return the body of a block without choices, which become pending conditions."""
        places = dict(zip((v.var for v in realize.block.iter_vars), realize.iter_values, strict=True))
        choices: list[Any] = []

        def chosen(node: Any) -> Any:
            if _is_choice(node):
                choices.append(node.args[0])
                return node.args[1]
            return node

        def placed(node: Any) -> Any:
            return places.get(node, node) if isinstance(node, tirx.Var) else node

        if not is_sum(realize.block):
            return realize.block.body
        body = tvm_ffi.structural_map(realize.block.body, chosen)
        for choice in choices:
            for condition in _conjuncts(tvm_ffi.structural_map(choice, placed)):
                simple = self.analyzer.simplify(condition)
                if not self.analyzer.can_prove(simple):
                    self.pending.append(simple)
        return body


def _conjuncts(condition: Any) -> list[Any]:
    """Return the conditions that must all hold."""
    if type(condition).__name__ == "And":
        return [*_conjuncts(condition.a), *_conjuncts(condition.b)]
    return [condition]


def _variables(expression: Any) -> list[Any]:
    variables: list[Any] = []
    tvm_ffi.structural_walk(expression, lambda node: variables.append(node) if isinstance(node, tirx.Var) else None)
    return variables


def _mentions(expression: Any, variable: Any) -> bool:
    return any(variable.same_as(other) for other in _variables(expression))
