"""Fewer parentheses, same meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.codegen.c_expression import NotUnderstood, simplify


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [
        ("((x * 4) + y)", "x * 4 + y"),
        ("(x * (4 + y))", "x * (4 + y)"),
        ("((a + b) + c)", "a + b + c"),
        ("(a + (b + c))", "a + (b + c)"),
        ("(a - (b - c))", "a - (b - c)"),
        ("((a / b) * c)", "a / b * c"),
        ("(a / (b * c))", "a / (b * c)"),
        ("(a + (b << c))", "a + (b << c)"),
        ("((a + b) >> 7)", "(a + b) >> 7"),
        ("((a & b) == c)", "(a & b) == c"),
        ("((a < b) && (c == d))", "a < b && c == d"),
        ("((a && b) || c)", "(a && b) || c"),
        ("(v_) < (127) ? (v_) : (127)", "v_ < 127 ? v_ : 127"),
        ("((int8_t)((v) > (-128) ? (v) : (-128)))", "(int8_t)(v > -128 ? v : -128)"),
        ("((int32_t)P[((t * 128) + k)])", "(int32_t)P[t * 128 + k]"),
        ("((int64_t)(a + b))", "(int64_t)(a + b)"),
        ("f((&(P[(t * 4)])), (&(w[0])), 3)", "f(&P[t * 4], w, 3)"),
        ("(-(a + b))", "-(a + b)"),
        ("(- -a)", "- -a"),
        ("acc = (acc + (x * y))", "acc += x * y"),
        ("acc = ((acc + x) + y)", "acc = acc + x + y"),
        ("a[i] = (a[i] - (b + c))", "a[i] -= b + c"),
        ("acc = (x + acc)", "acc = x + acc"),
        ("y = (0x1.8p+1)", None),
        ("y = (1.5e-05f * x)", "y = 1.5e-05f * x"),
    ],
)
def test_expressions_that_tvm_prints(printed: str, wanted: str | None) -> None:
    if wanted is None:
        with pytest.raises(NotUnderstood):
            simplify(printed)
    else:
        assert simplify(printed) == wanted


NAMES = {"a": 3, "b": -5, "c": 7, "d": 2}
OPERATORS = st.sampled_from(["+", "-", "*", "<<", "&", "|", "^", "<", "==", ">="])
EXPRESSIONS = st.recursive(
    st.sampled_from(sorted(NAMES)) | st.integers(0, 9).map(str),
    lambda inner: st.tuples(inner, OPERATORS, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=12,
)


@given(EXPRESSIONS)
def test_the_value_stays_the_same(expression: str) -> None:
    """Python evaluates both. Where its precedence differs from C's the parentheses must have been kept."""
    shifts_are_defined = expression.replace("<<", "*")
    short = simplify(shifts_are_defined)
    assert eval(short, {}, dict(NAMES)) == eval(shifts_are_defined, {}, dict(NAMES))
    assert len(simplify(expression)) <= len(expression)


@given(EXPRESSIONS)
def test_simplifying_twice_changes_nothing_more(expression: str) -> None:
    once = simplify(expression)
    assert simplify(once) == once


@pytest.mark.parametrize("text", ["a +", "(a", "a b", "{", 'f("x")', "a ? b"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstood):
        simplify(text)
