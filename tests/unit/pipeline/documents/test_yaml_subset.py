"""YAML outside of the subset is refused at its position, before it costs time or memory."""

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
        ("a: 1\na: 2", "r.yaml:2:1: duplicate key 'a'"),
        ("a:\n  null: 2", "r.yaml:2:3: YAML reads the key null as null; write 'null'"),
        ("a: {1.5: 2}", "r.yaml:1:5: YAML reads the key 1.5 as a number; write '1.5'"),
        ("?\n: 2", "r.yaml:1:2: a key is missing before the colon"),
        ("? [a]\n: 2", "r.yaml:1:3: a key must be text, not a list or a mapping"),
        ("a: 9223372036854775808", "r.yaml:1:4: the number 9223372036854775808 has more than 64 bits"),
        ("a: 010", "r.yaml:1:4: a number that starts with 0 is ambiguous: write 10 or 8"),
        ("a: !!python/name:os.system x", "r.yaml:1:4: the tag !!python/name:os.system is not allowed in recipes"),
        ("a: !!int four", "r.yaml:1:4: 'four' is not a whole number; remove the tag !!int"),
        ("a: !!float [1]", "r.yaml:1:4: the tag !!float is for a number, not for a list"),
        ("a: !!seq 7", "r.yaml:1:4: the tag !!seq is for a list, not for a single value"),
        ("a: [<<]", "r.yaml:1:5: << is the merge key; quote it for text"),
        ("<<: [{a: 1}, 2]", "r.yaml:1:14: << merges a mapping, or a list of mappings: `<<: *name`"),
        ("a: &x [*x]", "r.yaml:1:4: an anchor contains itself"),
        (_LAUGHS, "r.yaml:5:5: with its aliases this expands to 111,111 values; the limit is 100,000"),
        ("a: " + "[" * 100_000, f"r.yaml:1:{MAX_DEPTH + 3}: nested more than {MAX_DEPTH} levels deep"),
        ("a: 1\n---\nb: 1", "r.yaml:2:1: YAML syntax: a second document starts here; only one is allowed"),
        (f"a: 1\n{'k' * 1100}: 2", "r.yaml:2:1101: YAML syntax: the key is longer than 1,024 characters"),
        ("a: 1\nb\nc: 2", "r.yaml:2:1: YAML syntax: a key needs ': ' after it"),
        ("a: [1\nb: 2", "r.yaml:2:2: YAML syntax: missing comma or ] in the list that starts at 1:4"),
        ("a: 'b\n", "r.yaml:1:4: YAML syntax: the closing quote is missing"),
        ("%YAML 9.9\n---\na: 1", "r.yaml:1:1: YAML syntax: unknown YAML version; use 1.1 or 1.2"),
        ("a: 1\nb: x\x1b[31m", "r.yaml:2:5: YAML syntax: control characters are not allowed"),
        (b"a: 1\nb: caf\xe9\n", "r.yaml:2:7: is not UTF-8 text: byte 0xe9; save the file as UTF-8"),
        ("a: 1".encode("utf-16"), "r.yaml: is UTF-16 text; save it as UTF-8"),
        (b"#" * (5 << 20), "r.yaml: is larger than 4 MiB, the limit for recipes"),
    ],
)
def test_invalid_yaml_is_refused_at_its_position(tmp_path: Path, text: str | bytes, first: str) -> None:
    assert refused(tmp_path, text)[0].startswith(first)


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("a:\n\tb: 1", "2:1", "indent with spaces"),
        ("a: {b: */first/*}", "1:9", "quote text that starts with *"),
        ("a: &x/y", "1:6", "quote text that starts with &"),
        ("%YAML 9.9\n---\na: 1", "1:1", "remove the line, or quote text that starts with %"),
        ("a: !x", "1:4", "quote text that starts with !"),
        ("a: {b: ${X}/c}", "1:9", "quote text with brackets or braces"),
    ],
)
def test_hints(tmp_path: Path, text: str, place: str, hint: str) -> None:
    lines = refused(tmp_path, text)
    assert lines[0].startswith(f"r.yaml:{place}: ") and lines[-1] == hint
    with pytest.raises(ValueError) as caught:
        parse_value(text)
    assert str(caught.value).endswith(f"; {hint}")


def test_exponential_merges_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, _MERGES)[0].endswith("values; the limit is 100,000")


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
    loaded = load(text)
    assert loaded == value and type(loaded) is type(value)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_document(tmp_path / "r.yaml", "r.yaml").data == {"a": 1}
    assert refused(tmp_path, b"\xef\xbb\xbfa: 1\na: 2\n")[0] == "r.yaml:2:1: duplicate key 'a'"


def test_long_line_is_shown_around_its_column(tmp_path: Path) -> None:
    lines = refused(tmp_path, "a: [" + "x, " * 33_000 + "*nope, " + "y, " * 100 + "]")
    assert lines[0] == "r.yaml:1:99005: YAML syntax: this alias has no anchor before it"
    assert len(lines[1]) < 130 and lines[1][lines[2].index("^")] == "*"
    assert lines[1].startswith("    1 | ...") and lines[1].endswith("...")


def test_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("pipe.yaml", "folder.yaml"):
        with pytest.raises(RecipeError, match=f"{name}: cannot be read"):
            load_document(tmp_path / name, name)
