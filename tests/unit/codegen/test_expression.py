"""Few parentheses, and the meaning stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.lower.codegen import expression as c
from stages.lower.codegen.expression import C

A, B, X, Y = (C(name) for name in "abxy")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (c.binary(c.binary(X, "*", C("4")), "+", Y), "(x * 4) + y"),
        (c.binary(X, "*", c.binary(C("4"), "+", Y)), "x * (4 + y)"),
        (c.binary(A, "+", c.binary(B, "+", X)), "a + (b + x)"),
        (c.binary(A, "-", c.binary(B, "-", X)), "a - (b - x)"),
        (c.binary(A, "+", c.binary(B, "<<", X)), "a + (b << x)"),
        (c.binary(c.binary(A, "+", B), ">>", C("7")), "(a + b) >> 7"),
        (c.binary(c.binary(A, "&", B), "==", X), "(a & b) == x"),
        (c.binary(c.binary(A, "<", B), "&&", c.binary(X, "==", Y)), "(a < b) && (x == y)"),
        (c.binary(c.binary(A, "&&", B), "||", X), "(a && b) || x"),
        (c.choice(c.binary(A, "<", C("127")), A, C("127")), "(a < 127) ? a : 127"),
        (c.cast("int8_t", c.choice(A, X, c.number("-128"))), "(int8_t)(a ? x : -128)"),
        (c.cast("int32_t", c.element("p", c.binary(X, "*", C("8")))), "(int32_t)p[x * 8]"),
        (c.call("f", [c.address("p", c.binary(X, "*", C("4"))), c.address("w", C("0")), C("3")]), "f(&p[x * 4], w, 3)"),
        (c.negated(c.binary(A, "||", B)), "!(a || b)"),
        (c.binary(A, "-", c.number("-1.5f")), "a - -1.5f"),
    ],
)
def test_parentheses_where_they_are_needed(made: C, text: str) -> None:
    assert made.text == text


@pytest.mark.parametrize(
    ("target", "value", "text"),
    [
        ("a", c.binary(A, "+", c.binary(X, "*", Y)), "a += x * y;"),
        ("a", c.binary(c.binary(A, "+", X), "+", Y), "a = a + x + y;"),
        ("a", c.binary(A, "-", c.binary(B, "+", X)), "a -= b + x;"),
        ("a", c.binary(X, "+", A), "a = x + a;"),
    ],
)
def test_a_sum_that_goes_on(target: str, value: C, text: str) -> None:
    assert c.assignment(target, value) == text


NAMES = {"a": 3, "b": -5, "x": 7, "y": 2}
OPERATORS = st.sampled_from(["+", "-", "*", "&", "|", "^", "<", "==", ">="])
TREES = st.recursive(st.sampled_from(sorted(NAMES)), lambda inner: st.tuples(inner, OPERATORS, inner), max_leaves=12)


def printed(tree: str | tuple) -> C:
    return C(tree) if isinstance(tree, str) else c.binary(printed(tree[0]), tree[1], printed(tree[2]))


def value(tree: str | tuple) -> int:
    if isinstance(tree, str):
        return NAMES[tree]
    return int(eval(f"l {tree[1]} r", {}, {"l": value(tree[0]), "r": value(tree[2])}))


@given(TREES)
def test_the_value_stays_the_same(tree: str | tuple) -> None:
    """Where Python's precedence differs from C's, the parentheses must have been kept."""
    assert int(eval(printed(tree).text, {}, dict(NAMES))) == value(tree)


def test_precedence_is_c_s() -> None:
    """C11, 6.5.5 to 6.5.14: from the operators that bind tightest."""
    rows = ["* / %", "+ -", "<< >>", "< <= > >=", "== !=", "&", "^", "|", "&&", "||"]
    levels = [{c.binary(C("a"), operator, C("b")).level for operator in row.split()} for row in rows]
    assert all(len(level) == 1 for level in levels)
    found = [level.pop() for level in levels]
    assert found == sorted(set(found), reverse=True)
    assert c.negated(C("a")).level > found[0] and found[-1] > c.choice(C("a"), C("b"), C("d")).level
