"""Text made safe for the terminal, log.txt and Markdown, for each kind of text that means something there."""

import re
from collections.abc import Callable

import pytest

from stages.support.messages import escape

# Names as models and recipes may have them.
HOSTILE = (
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "a\nERROR: forged", "a\r\x1b[2Kforged", "a\x00b"),
    *("a\x08\x08b", "\u202eevil", "zero\u200bwidth", "\ufeffbom", "line\u2028separator", "\ud800", "\udcff"),
    *("\U000e0041tag", "[red]text[/]", "[/]", "[link=file:///]x[/link]", ":smile:", "a|b", "`code`", "``", "**bold**"),
    *("_under_", "<script>alert(1)</script>", "<!-- comment", "&lt;", "![image](https://x/y.png)", "[link](https://x)"),
    *("~~gone~~", "https://example.com", "www.example.com", "# title", "\\|", "\\", "$math$", "x" * 100_000),
    "\x1b" * 100_000,
)


def short(text: str) -> str:
    """A test's name; some texts are very long."""
    return ascii(text)[:40]


@pytest.mark.parametrize("text", HOSTILE, ids=short)
def test_terminal(text: str) -> None:
    for shown in (escape.name(text), escape.line(text), escape.visible(text)):
        assert shown.isprintable()
    assert len(escape.name(text)) <= 100 * 10
    assert len(escape.line(text)) <= 600 * 10
    assert escape.message(text).count("\n") == text.count("\n")
    assert all(line.isprintable() for line in escape.message(text).split("\n"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cafe\u0301", "cafe\u0301"),
        ("\u0e01\u0e35\u0e48", "\u0e01\u0e35\u0e48"),  # Thai: a vowel sign and a tone mark
        ("\u0301x", "\\u0301x"),
        ("a\n\u0301x", "a\\n\\u0301x"),
        ("\u202e\u20dd", "\\u202e\\u20dd"),
        ("a" + 6 * "\u0333" + "b", "a" + 4 * "\u0333" + 2 * "\\u0333" + "b"),
    ],
    ids=short,
)
def test_marks_stay_with_a_letter_and_do_not_pile_up(text: str, shown: str) -> None:
    assert escape.visible(text) == escape.line(text) == shown


@pytest.mark.parametrize("text", HOSTILE, ids=short)
def test_log_line_is_whole(text: str) -> None:
    shown = escape.log_line(text)
    assert shown.isprintable() and len(shown) >= len(text)
    shown.encode()


@pytest.mark.parametrize("text", HOSTILE, ids=short)
def test_markdown_has_no_markup_left(text: str) -> None:
    for shown in (escape.markdown(text), escape.markdown_cell(text.replace("\n", ""))):
        assert shown.isprintable()
        # CommonMark: a backslash takes the meaning of the punctuation that follows.
        bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", shown)
        assert not re.search(r"[`*<|\[\]&~$\\]|://|www\.|\b_|_\b", bare)


def test_what_is_harmless_stays() -> None:
    for text in (
        "MobilenetV1/Conv2d_0/Relu6",
        "NHWC->NCHW/OHWI",
        "1,208,064 B",
        "0 of 4,004, 31 layers",
        "größe – 3 × 3",
    ):
        assert escape.name(text) == escape.line(text) == escape.markdown(text) == escape.log_line(text) == text
    assert escape.line("\ta\tb") == escape.log_line("\ta\tb") == "\ta\tb"


@pytest.mark.parametrize(
    ("shown", "limit"),
    [(escape.name, escape.NAME_LIMIT), (escape.line, escape.LINE_LIMIT), (escape.markdown_cell, 600)],
)
def test_text_up_to_the_limit_stays_whole_and_longer_text_loses_its_middle(
    shown: Callable[[str], str], limit: int
) -> None:
    text = "a" * (limit // 2) + "b" * (limit - limit // 2)
    assert shown(text) == text
    for longer in (text + "b", 100 * text):
        short = shown(longer)
        assert len(short) <= limit and "..." in short
        assert short.startswith("a" * (limit // 3)) and short.endswith("b" * (limit // 5))


def test_long_messages_say_how_much_is_left_out() -> None:
    shown = escape.message("\n".join(map(str, range(50))) + "\n").split("\n")
    assert shown[:3] == ["0", "1", "2"] and shown[-1] == "… and 38 more lines"
    trace = "x\nTraceback (most recent call last):\n" + "  File\n" * 50
    assert escape.message(trace) == trace.rstrip("\n")


def test_rows_and_cells() -> None:
    each = "y" * escape.LINE_LIMIT  # each line of a cell may have the whole limit
    assert escape.markdown_cell(f"{each}\n{each}") == f"{each}<br>{each}"
    assert escape.markdown_row(["a|b", "x\ny", "_z_"]) == "| a\\|b | x<br>y | \\_z\\_ |"


def test_what_follows_the_question_mark_of_a_url_is_not_shown() -> None:
    """As in the line of a recipe that a message shows."""
    text = 'model: {url: "https://host/net.tflite?token=abc#d", sha256: 1}, what?'
    shown = 'model: {url: "https://host/net.tflite?***", sha256: 1}, what?'
    assert escape.line(text) == escape.log_line(text) == shown
