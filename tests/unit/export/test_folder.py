"""An export touches no file that is not its own."""

import json
from pathlib import Path

import pytest

from stages.base import StageError
from stages.delivery.export import folder

FACTS = {"recipe": "kws", "target": "cortex-m4", "form": "cmake", "overrides": ""}
FILES = {"README.md": b"one", "src/a.c": b"two", "src/deep/b.c": b"three"}


def everything(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def refused(root: Path, facts: dict[str, str] = FACTS, files: dict[str, bytes] = FILES) -> str:
    before = everything(root) if root.is_dir() else {}
    with pytest.raises(StageError) as caught:
        folder.write(root, files, facts, "out")
    assert (everything(root) if root.is_dir() else {}) == before
    return str(caught.value)


def test_new_again_changed_and_less(tmp_path: Path) -> None:
    out = tmp_path / "new/out"
    assert folder.write(out, FILES, FACTS, "out") == 3
    first = everything(out)
    assert {path: data for path, data in first.items() if path != folder.MANIFEST} == FILES
    assert folder.write(out, FILES, FACTS, "out") == 0 and everything(out) == first
    # What is built beside it stays; what the export has no more goes, with its folder.
    (out / "build").mkdir()
    (out / "build/x.o").write_bytes(b"mine")
    assert folder.write(out, {"README.md": b"other", "src/a.c": b"two"}, FACTS, "out") == 2
    assert not (out / "src/deep").exists() and (out / "build/x.o").read_bytes() == b"mine"
    # A file that somebody removed is written again.
    (out / "README.md").unlink()
    assert folder.write(out, {"README.md": b"other", "src/a.c": b"two"}, FACTS, "out") == 1


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "src").mkdir()
    assert refused(tmp_path) == "out has other files: notes.txt, src\nname a new or an empty folder with to=FOLDER"
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "broken link" in refused(tmp_path / "link")


def test_files_that_were_changed_are_named(tmp_path: Path) -> None:
    folder.write(tmp_path / "out", FILES, FACTS, "out")
    (tmp_path / "out/src/a.c").write_bytes(b"my own")
    assert "changed since they were exported: src/a.c\n" in refused(tmp_path / "out")
    (tmp_path / "out/src/a.c").unlink()
    (tmp_path / "out/src/a.c").mkdir()
    assert "changed since they were exported: src/a.c\n" in refused(tmp_path / "out")


def test_another_export_and_a_damaged_list(tmp_path: Path) -> None:
    out = tmp_path / "out"
    folder.write(out, FILES, FACTS, "out")
    assert "has another export: kws for cortex-m4 as cmake" in refused(out, {**FACTS, "form": "zephyr"})
    manifest = out / folder.MANIFEST
    for damage in ("", "[]", '{"files": 3}'):
        manifest.write_text(damage)
        assert "is damaged" in refused(out)
    manifest.write_text(json.dumps({**FACTS, "files": {"../../x": "0"}}))
    assert "outside of" in refused(out)


def test_what_was_given_otherwise_makes_another_export(tmp_path: Path) -> None:
    out = tmp_path / "out"
    folder.write(out, FILES, FACTS, "out")
    other = {**FACTS, "overrides": "model=other.tflite"}
    assert "has another export: kws for cortex-m4 as cmake, without set= and model=" in refused(out, other)
    folder.write(tmp_path / "two", FILES, other, "two")
    assert "another export: kws for cortex-m4 as cmake, with model=other.tflite" in refused(tmp_path / "two")
    # Those that were written before this was noted had none.
    manifest = json.loads((out / folder.MANIFEST).read_text())
    del manifest["overrides"]
    (out / folder.MANIFEST).write_text(json.dumps(manifest))
    assert folder.write(out, FILES, FACTS, "out") == 0


def test_an_interrupted_export_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever file was last, the next export finds old and new ones to be its own."""
    out = tmp_path / "out"
    folder.write(out, FILES, FACTS, "out")
    after = {"README.md": b"1", "src/a.c": b"2", "src/c.c": b"3"}
    written: list[Path] = []
    real = folder.write_atomically

    def dying(path: Path, content: str | bytes) -> None:
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(path)
        real(path, content)

    monkeypatch.setattr(folder, "write_atomically", dying)
    with pytest.raises(KeyboardInterrupt):
        folder.write(out, after, FACTS, "out")
    monkeypatch.undo()
    folder.write(out, after, FACTS, "out")
    assert {path: data for path, data in everything(out).items() if path != folder.MANIFEST} == after
