"""Loop nests as C: variables for allocations, temporaries that are never stale, and no wrong C."""

from collections.abc import Callable
from typing import Any

import pytest
from tvm import tirx
from tvm.tirx.script.builder import ir as T

from stages.backends.kernels.tir.block import Block, Function, Operand, accumulator, loop, store
from stages.lower.codegen.lower import CFunction, to_c
from stages.lower.codegen.names import Names
from stages.lower.codegen.printer import print_function


def layer(meaning: Callable[[Any], None], cells: int = 1) -> CFunction:
    """A function of int32 x[8] and y[8] with a block that has this meaning; `acc` is its scratch."""
    acc = Operand("acc", (cells,), "int32", "rw") if cells > 1 else accumulator()
    block = Block("all", (Operand("x", (8,), "int32"), Operand("y", (8,), "int32", "w"), acc), meaning)
    with Function("layer") as f:
        x, y = f.input(0, (8,), "int32"), f.output(0, (8,), "int32")
        f.place(block, x=x, y=y, acc=f.scratch("acc", (cells,), "int32"))
    made = f.lowering()
    return to_c({"layer": made.workload}, {"layer": made.roles})["layer"]


def lines(made: CFunction) -> list[str]:
    return [line.strip() for line in made.body.splitlines()]


def test_a_parameter_that_only_such_elements_read_is_not_used() -> None:
    """It would be a warning, and so an error, of the C compiler."""

    def meaning(b: Any) -> None:
        store(b.acc, b.acc[0] + b.x[0], 0)
        store(b.y, 7, 1)

    made = layer(meaning)
    assert made.body == "    output[1] = 7;\n"
    assert made.used == {"output"}


def test_a_call_stays_even_when_its_value_is_not_read() -> None:
    def meaning(b: Any) -> None:
        store(b.acc, T.call_extern("int32", "next", b.x[0]), 0)
        store(b.y, 1, 0)

    assert "acc = next(input[0]);" in lines(layer(meaning))


def test_one_temporary_serves_while_what_it_read_is_unchanged() -> None:
    def meaning(b: Any) -> None:
        store(b.acc, b.x[0], 0)
        store(b.y, T.max(b.acc[0], b.x[1]), 0)
        store(b.y, T.min(b.acc[0], b.x[2]), 1)  # acc as before
        store(b.acc, b.x[3], 0)
        store(b.y, T.max(b.acc[0], b.x[1]), 2)  # another acc, the same x[1]

    assert lines(layer(meaning))[2:] == [
        "int32_t v = acc;",
        "int32_t v1 = input[1];",
        "output[0] = (v > v1) ? v : v1;",
        "int32_t v2 = input[2];",
        "output[1] = (v < v2) ? v : v2;",
        "acc = input[3];",
        "int32_t v3 = acc;",
        "output[2] = (v3 > v1) ? v3 : v1;",
    ]


def test_no_temporary_from_before_a_loop_that_stores_what_it_read() -> None:
    def meaning(b: Any) -> None:
        store(b.acc, b.x[0], 0)
        store(b.y, T.max(b.acc[0], 7), 0)
        with loop(("i", 7)) as i:
            store(b.y, T.max(b.acc[0], 7), i + 1)
            store(b.acc, b.x[i], 0)

    made = lines(layer(meaning))
    start = made.index("for (intptr_t i = 0; i < 7; ++i) {")
    assert made[start + 1 : start + 3] == ["int32_t v1 = acc;", "output[i + 1] = (v1 > 7) ? v1 : 7;"]


def test_only_one_side_of_a_choice_is_evaluated() -> None:
    def meaning(b: Any) -> None:
        with loop(("i", 8)) as i:
            store(b.y, tirx.if_then_else(i > 0, b.x[i - 1], 5), i)

    assert lines(layer(meaning))[1:-1] == [
        "int32_t condval;", "if (0 < i) {", "condval = input[i - 1];", "} else {", "condval = 5;", "}",
        "output[i] = condval;",
    ]  # fmt: skip


def test_an_array_that_would_be_on_the_stack_is_an_error() -> None:
    buffer, i = tirx.decl_buffer((4,), "int32", name="rows"), tirx.Var("i", "int32")
    store_ = tirx.For(i, 0, 4, tirx.ForKind.SERIAL, tirx.BufferStore(buffer, T.int32(1), [i]))
    with pytest.raises(RuntimeError, match="array rows would be on the stack"):
        print_function(tirx.PrimFunc([], tirx.SeqStmt([tirx.AllocBuffer(buffer), store_])))


def test_names_are_unique_and_no_words_of_c() -> None:
    names = Names()
    assert [names.new(name) for name in ("i", "i", "i_1", "int", "a.b")] == ["i", "i_1", "i_1_1", "int_1", "a_b"]
    names.new("v1")
    assert [names.temporary() for _ in range(3)] == ["v", "v2", "v3"]
