"""Cycles of the units in the report, measured beside predicted, and the picture of their timeline."""

from typing import Any
from xml.etree import ElementTree

import pytest

from stages.report.cycles import cycles, far_off
from stages.report.markdown import _cycles
from stages.report.timeline import timeline_svg

SEARCH: dict[str, Any] = {
    "status": "optimum", "taken": "solver", "cycles": 2000, "bound": 2000, "gap": 0.001, "nodes": 1,
    "node_limit": 4000, "memory": 640, "candidates": {"solver": 2100, "greedy": 2100},
}  # fmt: skip
TIMES = {"cycles": 90, "engine": 60, "dma": 8, "core": 25, "waiting": 65}
PLAN: dict[str, Any] = {
    "layers": [{"index": 0, "predicted": TIMES}, {"index": 1, "predicted": None}, {"index": 2, "predicted": TIMES}],
    "attachment": {"assumptions": ["the engine is quick"]},
    "search": SEARCH,
}
DMA = {"bytes_per_cycle": 8, "fixed_cycles": 10, "run_cycles": 1, "queue": 2}
TARGET: dict[str, Any] = {"accelerator": {"kind": "toy", "dma": DMA}}
COUNTS: dict[str, Any] = {
    "inferences": [
        {
            "total": 200,
            "layers": [96, 4, 100],
            "units": {
                "toy": {"total": 120, "layers": [60, 0, 60]},
                "dma": {"total": 16, "layers": [12, 0, 4]},
                "waiting": {"total": 130, "layers": [70, 0, 60]},
            },
        }
    ],
    "timeline": [
        ["core", 0, 0, 96, 0, "layer 0"],
        ["dma", 0, 2, 14, 64, "transfer 0"],
        ["toy", 0, 20, 50, 9, "job 0"],
        ["wait-toy", 0, 26, 96, 0, "job 1"],
        ["toy", 0, 50, 80, 9, "job 1"],
        ["core", 2, 100, 200, 0, "layer 2"],
        ["toy", 2, 100, 160, 9, "job 2"],
    ],
}


def test_a_prediction_that_is_off_by_more_than_2_is_a_warning() -> None:
    def warned(total: int, *layers: int) -> list[str]:
        first = COUNTS["inferences"][0] | {"total": total, "layers": list(layers)}
        found = cycles({**COUNTS, "inferences": [first]}, PLAN, TARGET)
        assert found is not None
        return far_off(found)

    assert warned(360, 100, 160, 100) == [] == warned(90, 40, 4, 46)
    (told,) = warned(361, 100, 161, 100)
    assert told.startswith("361 cycles, 180 predicted: off by more than a factor of 2, ")
    assert told.endswith("the largest difference is in layer 1, 161 cycles (none predicted)")
    assert len(warned(89, 40, 4, 45)) == 1


def test_measured_beside_predicted() -> None:
    found = cycles(COUNTS, PLAN, TARGET)
    assert found is not None
    own = {key: found[key] for key in ("total", "engine", "dma", "core", "waiting")}
    assert own == {"total": 200, "engine": 120, "dma": 16, "core": 70, "waiting": 130}
    assert found["predicted"] == {"total": 180, "engine": 120, "dma": 16, "core": 50, "waiting": 130}
    first, second, _ = found["layers"]
    assert (first["total"], first["core"], first["predicted"]["total"]) == (96, 26, 90)
    assert (second["total"], second["core"], second["predicted"]) == (4, 4, None)
    assert found["search"] == SEARCH
    assert found["assumptions"][-1] == "the engine is quick"
    assert any("10 cycles for a transfer and 1" in sentence for sentence in found["assumptions"])
    engine = [stretch for stretch in found["timeline"] if stretch["unit"] == "engine"]
    assert [(one["layer"], one["begin"], one["end"]) for one in engine] == [(0, 20, 80), (2, 100, 160)]


SVG = "{http://www.w3.org/2000/svg}"


def report(**more: Any) -> dict[str, Any]:
    layers = [
        {"index": n, "name": name, "op": "conv2d", "kernel": "toy", "alternatives": []}
        for n, name in enumerate(("a", '<b> & "c"', "d"))
    ]
    return {
        "model": {"name": "net"}, "target": "board", "layers": layers, "cycles": cycles(COUNTS, PLAN, TARGET), **more
    }  # fmt: skip


def spans(picture: str, unit: str) -> list[tuple[int, int]]:
    """In cycles: from 60 to 990 are 200 of them."""
    (path,) = (one for one in ElementTree.fromstring(picture).iter(f"{SVG}path") if one.get("class") == unit)
    found = []
    for rectangle in (path.get("d") or "").split("z")[:-1]:
        begin, rest = rectangle[1:].split(" ")
        end = rest.split("H")[1].split("v")[0]
        found.append((round((float(begin) - 60) * 200 / 930), round((float(end) - 60) * 200 / 930)))
    return found


def test_units_work_where_they_do() -> None:
    picture = timeline_svg(report())
    assert spans(picture, "engine") == [(20, 80), (100, 160)]
    assert spans(picture, "dma") == [(2, 14)]
    assert spans(picture, "core") == [(0, 26), (96, 200)]


@pytest.mark.parametrize("lacking", [None, {"timeline": [], "total": 5}, {"timeline": [1], "total": 0}])
def test_without_a_timeline_there_is_no_picture(lacking: Any) -> None:
    assert timeline_svg(report(cycles=lacking)) == ""


def test_the_page_shows_it_and_what_other_kernels_would_take() -> None:
    found = report()
    found["layers"][0]["alternatives"] = [
        {"kernel": "toy", "cost": 5.0}, {"kernel": "slow", "cost": 9000.0}, {"kernel": "no", "cost": None},
        {"kernel": "generic.conv2d", "cost": 1234.4, "flips": 2},
    ]  # fmt: skip
    page = "\n".join(_cycles(found["cycles"], found["layers"]))
    assert "![Timeline of core, engine and DMA](timeline.svg)" in page
    rows = [line for line in page.splitlines() if line.startswith("| 0 |")]
    assert rows[0].endswith("| generic.conv2d 1,234 with 2 flips |")
