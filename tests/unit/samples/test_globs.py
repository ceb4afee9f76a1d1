"""Globs for input files: what they match, and that they never walk the machine."""

from pathlib import Path, PurePath

import pytest

from stages.base import StageError
from stages.ir.samples import globs
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


def test_the_machine_is_not_walked(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globs, "MOST_LOOKED_AT", 50)
    for pattern in ("/**", "/**/*.bin", "/*/*/*/*", "~/../../**"):
        with pytest.raises(StageError, match="is too broad") as caught:
            external_files(InputsConfig(files=("*.bin", pattern)), tree)
        assert caught.value.at == ("stages", "simulate", "inputs", "files", 1)


def test_a_circle_of_links_ends(tree: Path) -> None:
    assert globs.expand(tree / "/".join(["*"] * 200) / "z") == ([], [])
