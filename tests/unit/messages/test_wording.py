"""Lists in sentences stay short, and say how much they leave out."""

import pytest

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
