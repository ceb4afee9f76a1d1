"""What the machine that gives stages away sends of the files that they read."""

import contextlib
import threading
from pathlib import Path

import pytest

from pipeline.artifacts.digest import digest_of
from pipeline.errors import InputChanged
from pipeline.runs.executor import Work
from tests.unit.pipeline.conftest import FakeProject

pytest.importorskip("distributed", reason="needs the group dask: ./bootstrap --with dask")

from pipeline.distributed.dask_executor import DaskExecutor


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_changed_since_it_was_planned_is_not_sent(
    project: FakeProject, gone: bool, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What went under the digest of before would be refused by workers ever after."""
    shared, model = tmp_path_factory.mktemp("shared"), project.root / "model.txt"
    monkeypatch.setenv("FIRMLINE_REMOTE", f"file://{shared}")
    executor = object.__new__(DaskExecutor)  # without a scheduler
    executor._lock, executor._shared = threading.Lock(), set()

    def sent() -> list[Path]:
        workspace.flush()
        return [path for path in shared.rglob("*") if path.is_file()]

    with project.workspace() as workspace:
        action = workspace.plan("demo")["import"]
        ingredients = action.consuming({})
        work = Work(
            action=action,
            artifacts={},
            ingredients=ingredients,
            key=digest_of(ingredients),
            workspace=workspace,
            shared=True,
            force=False,
            convert_errors=contextlib.nullcontext,
            log=print,
            log_name="log.txt",
            progress=lambda *progress: None,
        )
        model.unlink() if gone else model.write_text("other weights\n")
        with pytest.raises(InputChanged, match=r"import: model\.txt changed after the run was planned"):
            executor._sent_file("model", model, work)
        assert sent() == [] and not any(project.store.glob("artifacts/*/*"))
        model.write_text("weights\n")
        key = executor._sent_file("model", model, work)
        artifact = workspace.find(key)
        assert artifact is not None and (artifact.files / "model.txt").read_text() == "weights\n"
        assert shared / "ac" / key in sent()
