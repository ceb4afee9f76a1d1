"""The picture of the timeline: who works when, layers, cycles; whatever names are."""

from typing import Any
from xml.etree import ElementTree

import pytest

from stages.report.cycles import cycles
from stages.report.markdown import _cycles
from stages.report.timeline import timeline_svg
from tests.unit.report.test_cycles import COUNTS, PLAN, TARGET

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
