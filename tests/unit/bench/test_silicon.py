"""`doit bench suite=silicon`, on checkouts that the tests write: libraries of a few functions."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.commands.bench.command import bench
from pipeline.commands.bench.silicon import Outcome, accuracies, silicon_rows
from pipeline.errors import PipelineError
from pipeline.project import Project
from pipeline.recipes.targets import load_targets
from stages.backends.timing.accuracy import accuracy_text
from tests.support.bench_options import BENCH_OPTIONS

CHIP = "mine: {title: My board, core: cortex-m4, clock: 80M, source: data sheet}"
HEADER = """\
#include <stdint.h>
#include <stddef.h>
typedef struct {{ void *buf; int32_t size; }} cmsis_nn_context;
typedef struct {{ int32_t n, h, w, c; }} cmsis_nn_dims;
/* int arm_product(int missing); */
int arm_product(const int8_t *lhs, const int8_t *rhs, const int32_t *bias, int8_t *dst,
                const int32_t dst_shift, const int32_t rhs_cols, const int32_t rhs_rows{more});
int32_t arm_dot(const int8_t *a, const int8_t *b, int32_t count);
"""
PRODUCT = """\
#include "arm_nnfunctions.h"
int arm_product(const int8_t *lhs, const int8_t *rhs, const int32_t *bias, int8_t *dst,
                const int32_t dst_shift, const int32_t rhs_cols, const int32_t rhs_rows)
{{
    for (int32_t i = 0; i < rhs_rows; i++)
        dst[i] = (int8_t)((arm_dot(lhs, rhs + i * rhs_cols, rhs_cols) + bias[i]) >> -dst_shift);
    return {status};
}}
"""
DOT = """\
#include "arm_nnfunctions.h"
int32_t arm_dot(const int8_t *a, const int8_t *b, int32_t count)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}
"""


def row(**changes: Any) -> str:
    fields: dict[str, Any] = {"chip": "mine", "code": "cmsis-nn", "version": "mine 1", "compiler": "GCC 12 -O3"}
    fields |= {"run": "arm_product", "arguments": {"columns": 64, "rhs_rows": 10}, "variant": "c"}
    fields |= {"cycles": 5000, "source": "measured"}
    return json.dumps({**fields, **changes})


def project_with(folder: Path, *rows: str) -> Project:
    lines = "\n".join(f"  - {line}" for line in rows)
    (folder / "silicon.yaml").write_text(f"schema: 1\nchips:\n  {CHIP}\nmeasurements:\n{lines}\n")
    return Project(folder)


def library(folder: Path, *, more: str = "", status: int = 0) -> str:
    """Write a checkout and return the value of `peer`."""
    for name, text in {
        "Include/arm_nnfunctions.h": HEADER.format(more=more),
        "Include/arm_nnsupportfunctions.h": "",
        "Source/A/arm_product.c": PRODUCT.format(status=status),
        "Source/B/dot.c": DOT,
        "Source/B/unused.c": "#error not needed\n",
    }.items():
        path = folder / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return f"cmsis-nn={folder}/library"


def run(folder: Path, project: Project, **options: Any) -> tuple[int, list[dict[str, Any]]]:
    made = folder / "figures.json"
    code = bench({**BENCH_OPTIONS, "only": "mine", "json": str(made), **options}, root=project, suite_name="silicon")
    return code, json.loads(made.read_text())


def test_a_function_is_compiled_run_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = project_with(tmp_path, row(), row(code="tinyengine", run="vww", version="1"))
    code, (first, other) = run(tmp_path, project, peer=library(tmp_path))
    assert code == 0
    assert 64 * 10 * 3 < first["instructions"] < first["cycles"][1] < 64 * 10 * 20
    assert first["error"] == pytest.approx(first["cycles"][1] / 5000 - 1)
    assert other["failed"] == "no program runs tinyengine"
    shown = capsys.readouterr().out
    assert "held out" in shown and "not run: 1 rows; no program runs tinyengine" in shown
    assert run(tmp_path, project, peer=library(tmp_path))[1][0] == first


def test_a_project_fits_a_model_to_its_own_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = project_with(tmp_path, row(fit=True), row(arguments={"columns": 32, "rhs_rows": 8}, cycles=2000))
    silicon = tmp_path / "silicon.yaml"
    silicon.write_text(silicon.read_text().replace("cortex-m4", "cortex-m7"))
    options = {"only": "", "targets": "cortex-m7", "peer": library(tmp_path)}
    code, _ = run(tmp_path, project, fit=True, **options)
    shown = capsys.readouterr().out
    assert code == 0 and "fitted parameters" in shown
    entry = shown[shown.index("timings:") :].partition("}}}")[0] + "}}}\n"
    core = "cores: {mine-core: {like: cortex-m7, timing: cortex-m7-fitted}}\n"
    (tmp_path / "pipeline.yaml").write_text(f"schema: 1\n{entry}{core}")
    model = load_targets(Project(tmp_path))["mine-core"].timing_model
    assert model is not None and model.name == "cortex-m7-fitted"
    with pytest.raises(PipelineError, match="no row marked fit") as raised:
        run(tmp_path, project_with(tmp_path, row()), fit=True, **{**options, "targets": "cortex-m4"})
    assert "`fit: true`" in str(raised.value)


def test_without_a_checkout_the_row_names_what_it_needs(tmp_path: Path) -> None:
    code, (only,) = run(tmp_path, project_with(tmp_path, row()))
    assert (code, only["failed"], only["instructions"]) == (0, "name a checkout with peer=cmsis-nn=PATH", None)


@pytest.mark.parametrize(
    ("changes", "peer", "message"),
    [
        ({}, {"more": ", int32_t zeal"}, "arm_product has a parameter that no row describes: int32_t zeal"),
        ({}, {"status": 3}, "the function returned 3, not success"),
        ({"run": "arm_produce"}, {}, "does not declare arm_produce; did you mean 'arm_product'?"),
        ({"arguments": {"rhs_rows": 2}}, {}, "arm_product: the row's arguments have no 'columns'"),
        ({"variant": "fast"}, {}, "cmsis-nn has no variant fast"),
    ],
)
def test_rows_that_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], peer: dict[str, Any], message: str
) -> None:
    code, (only,) = run(tmp_path, project_with(tmp_path, row(**changes)), peer=library(tmp_path, **peer))
    assert code == 1
    assert message in only["failed"]
    assert f"ERROR: mine/{only['run']}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"only": "min"}, "only=min: no row matches", "mine"),
        ({"targets": "cortex-m44"}, "cortex-m44", "cortex-m4"),
        ({"peer": "cmsis=x"}, "unknown peer 'cmsis'", "Known: cmsis-nn"),
        ({"peer": "cmsis-nn"}, "expected NAME=PATH", ""),
        ({"check": True}, "check cannot be combined with suite=silicon", ""),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(PipelineError, match=message) as raised:
        run(tmp_path, project_with(tmp_path, row()), **options)
    assert hint in (raised.value.hint or "") + str(raised.value)


def test_a_row_names_its_machine_and_may_run_on_a_timing_model(tmp_path: Path) -> None:
    rows = {one.name: one for one in silicon_rows(project_with(tmp_path, row(compiler="GCC 12 -mfloat-abi=soft, -O1")))}
    mine, ri5cy = rows["mine/arm_product/c/-O1"].target, rows["ri5cy-verilator/crc32/-O2"].target
    assert mine is not None and "-mfloat-abi=soft" in mine.compiler.flags
    assert not any("hard" in flag for flag in mine.compiler.flags)
    assert ri5cy is not None and ri5cy.timing == "cv32e40p"


def outcome(model: str, error: float | None, *, fit: bool = False, compared: bool = True) -> Outcome:
    row: Any = SimpleNamespace(
        target=SimpleNamespace(timing_model=SimpleNamespace(name=model)),
        measurement=SimpleNamespace(fit=fit),
        published=1000,
        compared=compared,
    )
    result: Any = None if error is None else SimpleNamespace(cycles=(0, 1000 + round(1000 * error), 0))
    return Outcome(cast(Any, row), result)


def test_errors_are_those_of_rows_that_no_fit_used() -> None:
    rows = [
        outcome("m4", 0.9, fit=True),
        outcome("m4", 0.05),
        outcome("m4", -0.15),
        outcome("m4", None),
        outcome("m4", 0.5, compared=False),
    ]
    found = accuracies([*rows, outcome("m7", 0.02, fit=True)])
    assert found["m4"] == {"rows": 3, "held_out": 2, "mean": 0.1, "worst": 0.15}
    assert found["m7"] == {"rows": 1, "held_out": 0, "mean": 0.02, "worst": 0.02}
    assert accuracy_text(found["m4"]) == "on silicon: 3 rows, 2 held out, mean error 10 %, worst 15 %"
