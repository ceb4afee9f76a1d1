"""`doit bench` as a whole, on a suite of three rows whose runs are faked."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.command import SELECTION, Bench, bench
from pipeline.commands.bench.page import BEGIN, END
from pipeline.commands.bench.record import read_records
from pipeline.commands.exit_codes import FAILED
from pipeline.errors import PipelineError
from stages.backends.targets.load import family_files
from stages.support.system.installation import INSTALLATION as ROOT
from tests.unit.pipeline.commands.bench.bench_support import report, suite_file

Capture = pytest.CaptureFixture[str]

OPTIONS: dict[str, Any] = {option["name"]: option["default"] for option in Bench.cmd_options} | dict.fromkeys(
    SELECTION, ""
)


class Project:
    """A folder with a suite; `reports` says what each row's run gives, an exception is raised."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.suite = suite_file(root)
        self.reports: dict[str, Any] = {}
        for path in (*family_files(ROOT), ROOT / "pipeline.yaml"):
            copy = root / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(path.read_text())
        for page in ("README.md", "docs/reference/figures.md"):
            (root / page).parent.mkdir(parents=True, exist_ok=True)
            (root / page).write_text(f"text\n{BEGIN}\n{END}\n")

    def bench(self, **options: Any) -> int:
        assert options.keys() <= OPTIONS.keys()
        return bench({**OPTIONS, **options}, root=self.root, suite_file=self.suite, run=self._report)

    def _report(self, case: Case) -> dict[str, Any] | None:
        stored_report = self.reports.get(case.row, report())
        if isinstance(stored_report, Exception):
            raise stored_report
        assert isinstance(stored_report, dict)
        return stored_report


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("FIRMLINE_MODELS", raising=False)
    return Project(tmp_path)


def test_update_then_check_passes_then_a_rise_fails(project: Project, capsys: Capture) -> None:
    assert project.bench(update=True) == 0
    page = (project.root / "docs/reference/figures.md").read_text()
    assert page.startswith(f"text\n{BEGIN}\n")
    assert "| net | rv64-rvp | 0 of 20, 2 layers | 1,000 |" in page
    assert project.bench(check=True) == 0
    capsys.readouterr()
    project.reports["net"] = report((("conv", 700), ("softmax", 400)))
    assert project.bench(check=True, only="net", targets="rv64-rvp") == FAILED
    out = capsys.readouterr().out
    assert "WORSE: net on rv64-rvp: instructions 1,000 -> 1,100 (+10.0 %)" in out
    assert "layer 0 (conv_op) 'conv': 600 -> 700 (+16.7 %)" in out
    assert (project.root / "docs/reference/figures.md").read_text() == page
    # Nothing rose: FP32 needs less than before, so int8 is worth less.
    project.reports = {"net_fp32": report((("conv", 300), ("softmax", 100)))}
    assert project.bench(check=True) == FAILED
    assert "WORSE: Net, FP32 against int8: 400 / 1,000 is 0.4, below 0.5" in capsys.readouterr().out
    project.reports = {"net": report(mismatches=1)}
    assert [project.bench(), project.bench(check=True), project.bench(update=True)] == [FAILED] * 3


def test_update_of_some_rows_keeps_the_others_and_drops_those_gone(project: Project) -> None:
    project.bench(update=True)
    project.reports["net_fp32"] = report((("all", 9_000),))
    project.reports["net"] = report((("all", 1),))
    project.bench(update=True, only="net_fp32")
    records = read_records(project.root / "docs/bench.json")
    assert {key: record.instructions for key, record in records.items()} == {
        ("net", "rv64-rvp"): 1000,
        ("net", "rv64-scalar"): 1000,
        ("net_fp32", "rv64-scalar"): 9000,
    }
    text = project.suite.read_text()
    project.suite.write_text(
        text.replace("targets: [rv64-rvp, rv64-scalar]\n    peers", "targets: [rv64-rvp]\n    peers")
    )
    project.bench(update=True, only="net_fp32")
    assert ("net", "rv64-scalar") not in read_records(project.root / "docs/bench.json")


def test_row_that_fails_keeps_its_last_figures_and_the_exit_code_is_1(project: Project, capsys: Capture) -> None:
    project.bench(update=True)
    stored, page = ((project.root / name).read_text() for name in ("docs/bench.json", "docs/reference/figures.md"))
    project.reports["net"] = PipelineError("verify: 3 of 20 output values differ", hint="Its kernel is k.")
    assert project.bench(update=True) == 1
    assert (project.root / "docs/bench.json").read_text() == stored
    assert (project.root / "docs/reference/figures.md").read_text() == page
    output = capsys.readouterr()
    assert "failed: verify: 3 of 20 output values differ\n      Its kernel is k." in output.out
    assert "docs/bench.json: 3 rows, 2 of them unchanged\n" in output.out
    assert output.err.splitlines() == [
        "ERROR: 2 of 4 rows failed",
        "  net on rv64-rvp: verify: 3 of 20 output values differ",
        "  net on rv64-scalar: verify: 3 of 20 output values differ",
    ]
