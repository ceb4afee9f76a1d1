"""The simulation of many workers, where its result can be known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.scaling import measured
from tests.scaling.__main__ import main
from tests.scaling.page import PAGE, figures, read_figures, table, write_figures
from tests.scaling.simulation import Costs, Step, read_reports, simulate, stops_at

FREE = Costs(client=0, scheduler=0, worker=0, server=0, bandwidth=1e12)
CHAIN = [Step(2, 0, 0, 0), Step(3, 0, 0, 0), Step(1, 0, 0, 0)]


@pytest.mark.parametrize(("workers", "seconds"), [(1, 60), (2, 30), (5, 12), (10, 6), (1000, 6)])
def test_without_costs_it_is_work_by_workers_and_never_less_than_a_chain(workers: int, seconds: float) -> None:
    outcome = simulate([CHAIN] * 10, workers, FREE)
    assert outcome.seconds == pytest.approx(seconds)
    assert outcome.shares["workers"] == pytest.approx(60 / seconds / workers)


def test_who_does_one_thing_at_a_time_is_the_limit() -> None:
    """30 stages: 0.5 s of the client each, half of it before, half after."""
    outcome = simulate([CHAIN] * 10, 1000, Costs(client=4, scheduler=0, worker=0, server=0, bandwidth=1e12))
    assert 30 * 4 <= outcome.seconds <= 30 * 4 + 6
    assert outcome.shares["client"] > 0.95
    slow = Costs(client=0, scheduler=7, worker=0, server=0, bandwidth=1e12)
    assert 30 * 7 <= simulate([CHAIN] * 10, 1000, slow).seconds <= 30 * 7 + 6


def test_one_worker_takes_everything_one_after_the_other() -> None:
    """Of what it gets, leaves and is told, only the client's and the scheduler's part may overlap with others."""
    costs = Costs(client=0, scheduler=0, worker=0.5, server=0.25, bandwidth=100)
    chain = [Step(2, 0, 100, 100), Step(3, 100, 50, 50)]
    # worker 0.5 + get 0.25 + bytes, compute, send 0.25 + bytes; and the last artifact goes to the client.
    expected = (0.5 + 0.25 + 2 + 0.25 + 1) + (0.25 + 1) + (0.5 + 0.25 + 1 + 3 + 0.25 + 0.5) + (0.25 + 0.5)
    assert simulate([chain], 1, costs).seconds == pytest.approx(expected)


def test_who_comes_later_keeps_nobody_waiting() -> None:
    """Workers look up their code side by side: none of them holds the server meanwhile."""
    costs = Costs(client=0, scheduler=0, worker=5, server=0.01, bandwidth=1e12)
    outcome = simulate([CHAIN] * 40, 4, costs)
    assert outcome.seconds == pytest.approx(40 * (6 + 3 * 5.02) / 4, rel=0.01)


def test_where_it_stops() -> None:
    costs = Costs(client=0.1, scheduler=0, worker=0, server=0, bandwidth=1e12)
    outcomes = [simulate([[Step(1, 0, 0, 0)]] * 400, workers, costs) for workers in (1, 5, 10, 20, 40)]
    found = stops_at(outcomes)
    assert found is not None and found.workers == 10
    assert stops_at(outcomes[:3]) is None


def test_reports_are_chains_with_bytes_of_their_stages(tmp_path: Path) -> None:
    """The client reads what the build folder is made of, and of quantize nothing."""
    stages = [{"kind": "import", "seconds": 6.0}, {"kind": "quantize", "seconds": 3.0}]
    for name in ("a", "a/on_board"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps({"stages": stages}))
    (tmp_path / "report.json").write_text("{")
    sizes = {"import": 10.0, "quantize": 20.0}
    assert list(read_reports(tmp_path, lambda: sizes)) == [[Step(6, 0, 10, 10), Step(3, 10, 20, 0)]]


def test_the_page_is_made_of_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(re.sub(r"\| 10 \| .*", "| 10 | 0.1 |", PAGE.read_text()))
    assert main([], page) == 0
    assert page.read_text() == PAGE.read_text(), "python -m tests.scaling"
    # Nobody looks through a store for reports that are not there.
    monkeypatch.setattr(measured, "artifact_sizes", lambda: pytest.fail("reads the store"))
    assert main(["--measure", "digits_rvp", "--reports", str(tmp_path / "none")], page) == 1
    assert "no report.json below" in capsys.readouterr().err


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    costs = Costs(client=0.0123, scheduler=0.004, worker=0.25, server=0.01, bandwidth=1e8)
    write_figures(costs, [CHAIN], kept)
    assert read_figures(kept) == (costs, [CHAIN])


def test_the_table_names_who_is_the_limit() -> None:
    slow = Costs(client=0.0, scheduler=1.0, worker=0, server=0, bandwidth=1e12)
    text = figures(replace(slow, client=1e-9), [[Step(2, 0, 0, 0)]])
    assert "It stops scaling between 1 and 4 workers: Dask's scheduler is at work 100 % of the time then." in text
    free = table([simulate([CHAIN] * 40, workers, FREE) for workers in (1, 20)])
    assert free[2:] == ["| 1 | 4.0 | 1.0 | 100 % | 0 % | 0 % | 0 % |", "| 20 | 0.2 | 20.0 | 100 % | 0 % | 0 % | 0 % |"]
