"""Few parentheses, and the meaning stays."""

from hypothesis import given
from hypothesis import strategies as st

from stages.lower.codegen import expression as c
from stages.lower.codegen.expression import C

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
