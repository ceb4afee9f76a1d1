"""MISRA C:2012: the page of deviations, and emitted C of each architecture family."""

import shutil
from pathlib import Path

import pytest

from stages.delivery.evidence.misra import check, has_deviation, page
from stages.ir.models.spec import ZooModel
from tests.support.emitted import ROOT, target_named
from tests.support.mini_emit import PLAIN, emit_mini
from tests.support.stages_run import run_stages

needs_cppcheck = pytest.mark.skipif(shutil.which("cppcheck") is None, reason="needs cppcheck")


def test_page_is_current() -> None:
    """If not: python -m stages.delivery.evidence.misra > docs/reference/misra.md"""
    assert (ROOT / "docs/reference/misra.md").read_text() == page()


def test_deviations_are_for_their_files_only() -> None:
    assert has_deviation("18.4", "kernels/generic/gemm.c")
    assert not has_deviation("18.4", "layers.c")
    assert not has_deviation("17.3", "kernels/generic/gemm.c")


@needs_cppcheck
@pytest.mark.parametrize("core", ["rv32-rvp", "cortex-m4", "cortex-m55", "aarch64-dotprod", "rv32-ne16"])
def test_each_message_has_a_deviation(tmp_path: Path, core: str) -> None:
    model = ZooModel(zoo="ds_cnn")
    configs = {"tensorize": {"count": False}}
    made = run_stages(model, target_named(core), tmp_path, configs=configs, without=("ptq", "count"))
    result = check(made["emit"] / "src", target_named(core))
    assert not [message for message in result["messages"] if not message["deviation"]]
    assert not result["unread"]
    assert {"layers.c", "model.c"} <= {message["file"] for message in result["messages"]}


@needs_cppcheck
def test_a_message_without_deviation_is_counted(tmp_path: Path) -> None:
    emit_mini(tmp_path, kernels=PLAIN)
    src = tmp_path / "emitted/src"
    (src / "added.c").write_text("int added(int *p, int n);\nint added(int *p, int n)\n{\n    return *(p + n);\n}\n")
    (src / "broken.c").write_text("void f(\n")
    result = check(src, target_named("host"))
    assert [(m["file"], m["rule"]) for m in result["messages"] if not m["deviation"] and m["rule"] == "18.4"] == [
        ("added.c", "18.4")
    ]
    assert result["undeviated"] >= 1
    assert any("broken.c" in line for line in result["unread"])
