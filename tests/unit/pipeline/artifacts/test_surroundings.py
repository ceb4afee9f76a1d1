"""A store that cannot be written, limits of the system, a missing file: a message, and nothing half stored."""

import ctypes
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import StageFailed
from stages.base import Job
from tests.support.processes import python
from tests.unit.pipeline.conftest import FakeProject
from tests.unit.pipeline.fake_stages import FakeEmit

_COMMAND = """
import sys
from pathlib import Path
from pipeline.errors import PipelineError
from pipeline.keys.explain import explain
from tests.unit.pipeline.conftest import FakeProject
project, what = FakeProject(Path(sys.argv[1])), sys.argv[2]
try:
    if what == "explain":
        with project.workspace() as workspace:
            print(*(stage.cached for stage in explain(workspace.plan("demo"), workspace.store)))
    else:
        print(*(stage.cached for stage in project.run(**({} if what == "run" else {"set": what})).stages))
except PipelineError as error:
    print(error)
"""


def in_a_process(project: FakeProject, what: str, before: Callable[[], None]) -> str:
    """What a run, or `explain`, says in a process that `before` was called in."""
    return python("-c", _COMMAND, str(project.root), what, preexec_fn=before).stdout.strip()


def obey_permissions() -> None:
    """Also root's processes: CAP_DAC_OVERRIDE (1) is dropped from what programs may have (PR_CAPBSET_DROP, 24)."""
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) != 0:
        raise OSError("prctl")


def test_store_that_may_only_be_read_serves_what_it_has(project: FakeProject) -> None:
    project.run()
    for folder, _, _ in [*os.walk(project.store)]:
        Path(folder).chmod(0o555)
    try:
        assert in_a_process(project, "run", obey_permissions) == "True True True True"
        assert in_a_process(project, "explain", obey_permissions) == "True True True True"
        output = in_a_process(project, "stages.compile.opt=O3", obey_permissions)
    finally:
        for folder, _, _ in [*os.walk(project.store)]:
            Path(folder).chmod(0o755)
    assert output == (
        f"compile has to run, but the artifact store {project.store} cannot be written (Permission denied); "
        "set FIRMLINE_STORE to a folder that can be written"
    )
    assert list((project.store / "building").iterdir()) == []


@pytest.mark.parametrize(("which", "value"), [(resource.RLIMIT_FSIZE, 10), (resource.RLIMIT_NOFILE, 7)])
def test_limits(project: FakeProject, which: int, value: int) -> None:
    output = in_a_process(project, "run", lambda: resource.setrlimit(which, (value, value)))
    option = "f" if which == resource.RLIMIT_FSIZE else "n"
    assert output.endswith(f"raise the limit with ulimit -{option}") and len(output.splitlines()) == 2, output
    assert not list(project.store.glob("artifacts/*/*")) and not list(project.store.glob("building/*"))
    assert in_a_process(project, "run", lambda: None).split() == ["False"] * 4


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "emit: out of memory"),
        (
            ModuleNotFoundError("No module named 'stages.lower.gemm'", name="stages.lower.gemm"),
            (
                "emit: module stages.lower.gemm cannot be imported: No module named 'stages.lower.gemm'\n"
                "is the clone complete? run `git status`"
            ),
        ),
    ],
)
def test_what_a_stage_cannot_help_is_no_crash(
    project: FakeProject, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def run(stage: Any, job: Job[Any]) -> None:
        raise error

    monkeypatch.setattr(FakeEmit, "run", run)
    with pytest.raises(StageFailed) as caught:
        project.run()
    assert str(caught.value) == message
    assert list((project.store / "building").iterdir()) == []
