"""The 1 % rule, and what docs/bench.json keeps."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.check import Verdict, check
from pipeline.commands.bench.record import Record, read_records, write_records
from pipeline.commands.bench.run import Outcome
from pipeline.errors import PipelineError
from tests.unit.pipeline.commands.bench.bench_support import case, record


def compare(before: Record, now: Record) -> Verdict:
    return check([Outcome(case(), now)], {before.id: before})


@pytest.mark.parametrize(
    ("before", "now", "worse", "better", "code"),
    [
        (record((("all", 1000),)), record((("all", 1010),)), [], [], 0),
        (record((("all", 1000),)), record((("all", 1011),)), ["net on rv64-rvp: instructions 1,000 -> 1,011 (+1.1 %)"],
         [], 1),
        (record((("all", 1000),)), record((("all", 950),)), [], ["instructions 1,000 -> 950 (-5.0 %)"], 0),
        (record((("all", 1000),)), record((("all", 949),)), [], ["instructions 1,000 -> 949 (-5.1 %)"], 3),
        (
            record(),
            record((("conv", 500), ("softmax", 420))),
            ["net on rv64-rvp: layer 1 (softmax_op) 'softmax': 400 -> 420 (+5.0 %)"],
            ["net on rv64-rvp: instructions 1,000 -> 920 (-8.0 %)"],
            1,
        ),
        # A small layer counts only when the network feels it.
        (record((("conv", 100_000), ("reshape", 28))), record((("conv", 100_000), ("reshape", 60))), [], [], 0),
        (record((("conv", 100_000), ("reshape", 28))), record((("conv", 100_000), ("reshape", 228))),
         ["layer 1 (reshape_op) 'reshape': 28 -> 228"], [], 1),
        (record(rom=10_000), record(rom=10_100), [], [], 0),
        (record(rom=10_000), record(rom=10_101), ["ROM 10,000 -> 10,101 (+1.0 %) bytes"], [], 1),
        (record(ram=10_000), record(ram=10_101), ["RAM 10,000 -> 10,101 (+1.0 %) bytes"], [], 1),
        (record(ram=10_000), record(ram=8_000), [], ["RAM 10,000 -> 8,000 (-20.0 %) bytes"], 3),
        (record(), record(sha256="cd" * 32), ["the stored figures are for another model file"], [], 1),
    ],
)  # fmt: skip
def test_what_may_rise_and_fall(before: Record, now: Record, worse: list[str], better: list[str], code: int) -> None:
    verdict = compare(before, now)
    assert verdict.exit_code == code
    for lines, expected in ((verdict.worse, worse), (verdict.better, better)):
        assert bool(lines) == bool(expected)
        assert all(text in "\n".join(lines) for text in expected)


def test_figures_of_other_kernels_are_stale_whatever_they_are() -> None:
    before = record()
    layers = tuple({**layer, "kernel": f"new.{layer['name']}"} for layer in before.layers)
    verdict = compare(before, replace(before, layers=layers))
    (line,) = verdict.stale
    assert line.startswith("net on rv64-rvp: instructions 1,000 -> 1,000 (+0.0 %); 'conv' uses new.conv, was ")
    assert "'softmax' uses new.softmax" in line and (verdict.worse, verdict.exit_code) == ([], 3)


@pytest.mark.parametrize(("count", "stored"), [(1000, True), (1001, True), (1001, False)])
def test_limit_of_the_suite_holds_whatever_is_stored(count: int, stored: bool) -> None:
    """A rise of a thousandth passes where nothing limits it."""
    now = record((("conv", count),), row="real")
    before = {now.id: record((("conv", 1000),), row="real")} if stored else {}
    worse = check([Outcome(Case("real", "rv64-rvp", {}, "demo", at_most=1000), now)], before).worse
    expected = "real on rv64-rvp: 1,001 instructions, the limit is 1,000"
    assert worse == ([expected] if count > 1000 else [])


def test_records_survive_the_file_and_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    records = [
        record(),
        record(row="net_fp32", target="rv64-scalar", relative=3.14159e-6),
        record((("a", None),), row="h"),
        record(row="ne", cycles=True, share=0.123456),
    ]
    for name in ("one.json", "two.json"):
        write_records(tmp_path / name, records)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    read = read_records(tmp_path / "one.json")
    assert list(read.values()) == records
    assert read["net_fp32", "rv64-scalar"].max_relative == 3.1e-6
    assert read["ne", "rv64-rvp"].distance == {"share": 0.1235, "largest": 3.0}
    # One line per layer, so that a diff shows the layer.
    assert sum('"op"' in line for line in (tmp_path / "one.json").read_text().splitlines()) == 7


def test_absent_file_has_no_records_and_a_broken_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    assert read_records(path) == {}
    for text in ("{", '{"format": 99, "rows": []}', '{"format": 1, "rows": [{"row": "a"}]}', "[]"):
        path.write_text(text)
        with pytest.raises(PipelineError, match="doit bench --update"):
            read_records(path)
