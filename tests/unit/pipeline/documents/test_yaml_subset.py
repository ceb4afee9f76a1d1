"""What a recipe's YAML may be, and how the rest of YAML is refused: at its place, before it costs time or memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.documents.document import load_document, parse_value
from pipeline.documents.yaml_subset import MAX_DEPTH, load
from pipeline.errors import RecipeError

_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
_MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 10)
)


def refused(tmp_path: Path, content: str | bytes) -> list[str]:
    path = tmp_path / "r.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RecipeError) as caught:
        load_document(path, "r.yaml")
    lines = str(caught.value).splitlines()
    assert 1 <= len(lines) <= 5
    assert all(len(line) < 400 for line in lines)
    return lines


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a: 1\na: 2", "r.yaml:2:1: key 'a' is given twice"),
        ("a:\n  null: 2", "r.yaml:2:3: the key null is read as null; write 'null' for text"),
        ("a: {1.5: 2}", "r.yaml:1:5: the key 1.5 is read as a number; write '1.5' for text"),
        ("?\n: 2", "r.yaml:1:2: a key is missing before the colon"),
        ("? [a]\n: 2", "r.yaml:1:3: a key is text, not a list or a mapping"),
        ("a: 9223372036854775808", "r.yaml:1:4: the number 9223372036854775808 has more than 64 bits"),
        ("a: 010", "r.yaml:1:4: a number that begins with 0 is ambiguous: write 10 or 8"),
        ("a: !!python/name:os.system x", "r.yaml:1:4: the tag !!python/name:os.system means nothing in a recipe"),
        ("a: !!int four", "r.yaml:1:4: 'four' is not a whole number, as !!int says: leave !!int out"),
        ("a: !!float [1]", "r.yaml:1:4: !!float stands before a number, not before a list"),
        ("a: !!seq 7", "r.yaml:1:4: !!seq stands before a list, not before a single value"),
        ("a: [<<]", "r.yaml:1:5: << is a key that merges a mapping; as a text it stands in quotes"),
        ("<<: [{a: 1}, 2]", "r.yaml:1:14: << merges a mapping, or a list of mappings: `<<: *name`"),
        ("a: &x [*x]", "r.yaml:1:4: an anchor holds itself"),
        (_LAUGHS, "r.yaml:5:5: this is 111,111 values, with its aliases written out; 100,000 at most"),
        ("a: " + "[" * 100_000, f"r.yaml:1:{MAX_DEPTH + 3}: values are nested more than {MAX_DEPTH} deep"),
        ("a: 1\n---\nb: 1", "r.yaml:2:1: YAML syntax: a second document begins here; one is read"),
        (f"a: 1\n{'k' * 1100}: 2", "r.yaml:2:1101: YAML syntax: a key has more than 1,024 characters"),
        ("a: 1\nb\nc: 2", "r.yaml:2:1: YAML syntax: a key needs ': ' behind it"),
        ("a: [1\nb: 2", "r.yaml:2:2: YAML syntax: a comma or ] is missing here, in the list that begins at 1:4"),
        ("a: 'b\n", "r.yaml:1:4: YAML syntax: the text in quotes does not end"),
        ("%YAML 9.9\n---\na: 1", "r.yaml:1:1: YAML syntax: this version of YAML is unknown; 1.1 and 1.2 are known"),
        ("a: 1\nb: x\x1b[31m", "r.yaml:2:5: YAML syntax: control characters are not allowed"),
        (b"a: 1\nb: caf\xe9\n", "r.yaml:2:7: is not UTF-8 text: byte 0xe9; save the file as UTF-8"),
        ("a: 1".encode("utf-16"), "r.yaml: is UTF-16 text; save it as UTF-8"),
        (b"#" * (5 << 20), "r.yaml: has more than 4 MiB, which no recipe needs"),
    ],
)
def test_refused_at_its_place(tmp_path: Path, text: str | bytes, first: str) -> None:
    assert refused(tmp_path, text)[0].startswith(first)


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("a:\n\tb: 1", "2:1", "indent with spaces, not with a tab"),
        ("a: {b: */first/*}", "1:9", "a text that begins with * stands in quotes"),
        ("a: &x/y", "1:6", "a text that begins with & stands in quotes"),
        ("%YAML 9.9\n---\na: 1", "1:1", "leave the line out; a text that begins with % stands in quotes"),
        ("a: !x", "1:4", "a text that begins with ! stands in quotes"),
        ("a: {b: ${X}/c}", "1:9", "a text with brackets or braces stands in quotes"),
    ],
)
def test_what_helps(tmp_path: Path, text: str, place: str, hint: str) -> None:
    lines = refused(tmp_path, text)
    assert lines[0].startswith(f"r.yaml:{place}: ") and lines[-1] == hint
    with pytest.raises(ValueError) as caught:
        parse_value(text)
    assert str(caught.value).endswith(f"; {hint}")


def test_merges_that_multiply(tmp_path: Path) -> None:
    assert refused(tmp_path, _MERGES)[0].endswith("values, with its aliases written out; 100,000 at most")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-11-22", "2026-11-22"),
        ("1:30", "1:30"),
        ("1e-3", 0.001),
        ("1_000", 1000),
        ("0x1F", 31),
        ("-0x8000000000000000", -(1 << 63)),
        ("0.5", 0.5),
        ("yes", True),
        ("~", None),
        ("", None),
        ("'010'", "010"),
        ("!!str 010", "010"),
        ("{a: &x {b: 1}, c: {<<: *x, d: 2}}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
    ],
)
def test_values(text: str, value: object) -> None:
    found = load(text)
    assert found == value and type(found) is type(value)


def test_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_document(tmp_path / "r.yaml", "r.yaml").data == {"a": 1}
    assert refused(tmp_path, b"\xef\xbb\xbfa: 1\na: 2\n")[0] == "r.yaml:2:1: key 'a' is given twice"


def test_long_line_is_shown_around_its_column(tmp_path: Path) -> None:
    lines = refused(tmp_path, "a: [" + "x, " * 33_000 + "*nope, " + "y, " * 100 + "]")
    assert lines[0] == "r.yaml:1:99005: YAML syntax: no anchor with this name stands before it"
    assert len(lines[1]) < 130 and lines[1][lines[2].index("^")] == "*"
    assert lines[1].startswith("    1 | ...") and lines[1].endswith("...")


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("pipe.yaml", "folder.yaml"):
        with pytest.raises(RecipeError, match=f"{name}: cannot be read"):
            load_document(tmp_path / name, name)
