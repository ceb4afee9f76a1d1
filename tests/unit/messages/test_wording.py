"""Lists in messages stay short and say how much they leave out; errors of several operators are one message."""

import pytest

from stages.support.messages.operator_error import OperatorError, combined_error
from stages.support.messages.wording import did_you_mean, of_several, several


@pytest.mark.parametrize(
    ("names", "listed", "counted"),
    [
        ("a", "a", "layer a"),
        ("ab", "a, b", "layers a, b"),
        ("abcd", "a, b, c, d", "layers a, b, c, d"),
        ("abcde", "a, b, c and 2 more", "5 layers (a, b, c and 2 more)"),
        ("a" * 119, "a, a, a and 116 more", "119 layers (a, a, a and 116 more)"),
    ],
)
def test_names(names: str, listed: str, counted: str) -> None:
    assert several(list(names)) == listed
    assert of_several("layer", list(names)) == counted


def test_did_you_mean_guesses_only_what_is_near() -> None:
    assert did_you_mean("layuot", ["layout", "emit"]) == "; did you mean 'layout'?"
    assert did_you_mean("LSTMM", ["CONV_2D", "lstm"]) == "; did you mean 'lstm'?"
    assert did_you_mean("zzz", ["layout", "emit"]) == ""
    # What is no misspelt word costs no time.
    assert did_you_mean("layout" * 100_000, ["layout" * 100_000]) == ""


def error(index: int, op: str, what: str = "is not supported", name: str = "", hint: str = "") -> OperatorError:
    return OperatorError(index, op, name, what, "'x' -> 'y'", hint=hint)


def test_several_are_counted_with_where_they_are() -> None:
    loops = [error(i, "WHILE", "is control flow, which is not supported", f"loop {i}") for i in (4, 9, 12, 13, 20)]
    gathers = [error(i, "GATHER", hint="Supported: ADD.") for i in (1, 7)]
    assert str(combined_error([*gathers, *loops])).splitlines() == [
        "7 operators cannot be computed:",
        "  5 x WHILE (operators 4 'loop 4', 9 'loop 9', 12 'loop 12' and 2 more): control flow, which is not supported",
        "  2 x GATHER (operators 1, 7): not supported",
    ]


def test_complaints_that_differ_in_names_and_numbers_are_of_one_kind() -> None:
    errors = [error(i, "CONV_2D", f"has the dynamic shape [{i}, -1] in 'tensor {i}' (scale {i}.5e-3)") for i in (2, 3)]
    assert str(combined_error(errors)).splitlines()[1] == (
        "  2 x CONV_2D (operators 2, 3): has the dynamic shape [2, -1] in 'tensor 2' (scale 2.5e-3)"
    )


def test_many_kinds_stay_within_five_lines() -> None:
    errors = [error(i, f"OP_{i % 40}") for i in range(1000)]
    lines = str(combined_error(errors)).splitlines()
    assert len(lines) == 5
    assert lines[0] == "1000 operators cannot be computed:"
    assert lines[-1].startswith("  and 925 more: 25 x OP_3, 25 x OP_4, ")
    assert lines[-1].endswith("25 x OP_12 and 27 more")
    assert all(len(line) < 300 for line in lines)
