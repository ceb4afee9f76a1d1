"""Folders are removed whatever they are by now, and nothing that a link shows."""

from pathlib import Path

import pytest

from pipeline.artifacts.folders import make_folder, remove


def test_link_to_a_folder_goes_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("link", "dangling", "none"):
        remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept/file").read_text() == "x"


@pytest.mark.parametrize("mode", [0, 0o100, 0o500])
def test_closed_folder_goes(tmp_path: Path, mode: int) -> None:
    inner = tmp_path / "outer/inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(mode)
    remove(tmp_path / "outer")
    assert list(tmp_path.iterdir()) == []


def test_folder_is_made_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    make_folder(tmp_path / "f")
    make_folder(tmp_path / "f")
    assert (tmp_path / "f").is_dir()
