"""Globs for input files: what they match, and that they never walk the machine."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

import pytest

from stages.base import StageError
from stages.samples import globs
from stages.samples.named import blamed
from stages.simulate import InputsConfig
from stages.simulate.inputs import external_files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.bin", "b.bin", ".c.bin", "x/a.bin", "x/y/b.npy", ".git/a.bin", "x/.h/a.bin"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "loop").symlink_to(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.bin", ["a.bin", "b.bin"]),
        (".*.bin", [".c.bin"]),
        ("[ab].b?n", ["a.bin", "b.bin"]),
        ("**", ["a.bin", "b.bin", "x/a.bin", "x/y/b.npy"]),
        ("**/*.bin", ["a.bin", "b.bin", "x/a.bin"]),
        ("**/**/a.bin", ["a.bin", "x/a.bin"]),
        ("x/**/*", ["x/a.bin", "x/y/b.npy"]),
        ("*/a.bin", ["loop/a.bin", "x/a.bin"]),
        (".git/*", [".git/a.bin"]),
        ("x/../*.bin", ["x/../a.bin", "x/../b.bin"]),
        ("nothing/*", []),
    ],
)
def test_what_matches(tree: Path, pattern: str, names: list[str]) -> None:
    found = [path.relative_to(tree) for path in globs.expand(tree / pattern)[0]]
    assert sorted(map(str, found)) == names
    assert all(globs.fits(PurePath(pattern), path) for path in found)
    assert not globs.fits(PurePath(pattern), PurePath("elsewhere/z")) or pattern == "**"


def test_what_matches_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "in/folder").mkdir(parents=True)
    os.mkfifo(tmp_path / "in/pipe.bin")
    (tmp_path / "in/x.bin").symlink_to("nowhere")
    with pytest.raises(StageError, match=r"no file matches in/\*") as caught:
        external_files(InputsConfig(files=("in/*",)), tmp_path)
    assert caught.value.hint == (
        "what matches is no file: folder is a folder, pipe.bin is a pipe, x.bin is a link that leads nowhere"
    )


def test_the_machine_is_not_walked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globs, "MOST_LOOKED_AT", 50)
    for pattern in ("/**", "/**/*.bin", "/*/*/*/*", "~/../../**"):
        with pytest.raises(StageError, match="stands for too much") as caught:
            external_files(InputsConfig(files=("*.bin", pattern)), tree)
        assert caught.value.at == ("stages", "simulate", "inputs", "files", 1)


def test_a_circle_of_links_ends(tree: Path) -> None:
    assert globs.expand(tree / "/".join(["*"] * 200) / "z") == ([], [])


def test_files_are_named_as_the_pattern_says(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine's folders are: these names are in keys and artifacts."""
    monkeypatch.setenv("HOME", str(tree))
    monkeypatch.setenv("NETS", str(tree / "x"))
    patterns = ("~/*.bin", "${NETS}/*.bin", "x/y/../*.bin", f"{tree}/x/*.bin")
    found = external_files(InputsConfig(files=patterns), tree)
    assert list(found) == ["~/a.bin", "~/b.bin", "${NETS}/a.bin", "x/y/../a.bin", f"{tree}/x/a.bin"]
    assert all(path.is_file() for path in found.values())
    assert [blamed(patterns, name, ()) for name in found] == [(0,), (0,), (1,), (2,), (3,)]
