"""The pages that runs leave, in Chromium: nothing fails, nothing overflows, sorting and filtering work."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.api import RunResult, run_recipe
from pipeline.commands.compare import formats
from pipeline.commands.compare.difference import difference
from pipeline.commands.fit.page import fit_page
from pipeline.commands.fit.request import Request
from pipeline.commands.fit.row import FITS, TOO_LARGE, Row
from pipeline.terminal.matrix_page import matrix_page
from pipeline.terminal.matrix_row import MatrixRow

playwright = pytest.importorskip("playwright.sync_api", reason="./bootstrap --with browser pytest runs them")
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert CHROMIUM, "the group browser is there without chromium: apt-get install chromium"
    with playwright.sync_playwright() as started:
        # In a container root has no sandbox; what is opened are files of this test.
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return run_recipe("digits_rvp", build=tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def pages(run: RunResult, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report, a comparison, a matrix, and boards that a network fits."""
    folder = tmp_path_factory.mktemp("pages")
    report = json.loads((run.folder / "report.json").read_text())
    half = {**report, "layers": [{**one, "instructions": one["instructions"] // 2} for one in report["layers"]]}
    (folder / "compare.html").write_text(formats.page(difference(("before", "after"), report, half)))
    axes = [("a model with a long name", f"target-{number}") for number in range(12)]
    rows = [MatrixRow("m", b, {"model": a, "target": b}, "exact", 10**8, 10**6, 10**6, "") for a, b in axes]
    (folder / "matrix.html").write_text(matrix_page("many", "", rows, folder))
    board = Row(
        *("cv32e40p-testbench", "rv32imc-scalar", "OpenHW CV32E40P, the testbench of its own repository", TOO_LARGE),
        *(1_149_616, 256 << 10, 1_325_744, 5632 << 10, 887_472, 1_000_000),
        regions=[{"name": "axi_sram", "used": 1_149_616, "length": 262_144, "written": True, "same_as": ""}],
    )
    silicon = {"rows": 88, "held_out": 60, "mean": 0.07, "worst": 0.44}
    fit = [board, replace(board, verdict=FITS, missing_ram_bytes=0, missing_rom_bytes=0)]
    fit[1] = replace(fit[1], least_ms=1064.5, most_ms=1160.2, least_uj=10_644.0, most_uj=11_602.0, clock_hz=64_000_000)
    fit[1] = replace(fit[1], timing="cortex-m55", accuracy=silicon, instructions=5)
    (folder / "fit.html").write_text(fit_page(Request("a_network_with_a_long_name", (), "", {}), fit))
    made = {name: folder / f"{name}.html" for name in ("compare", "matrix", "fit")}
    return {"report": run.folder / "report.html", **made}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1000, 1400])
@pytest.mark.parametrize("which", ["report", "compare", "matrix", "fit"])
def test_nothing_fails_and_nothing_overflows(
    browser: Any, pages: dict[str, Path], which: str, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, wrong, asked = context.new_page(), [], []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pages[which].as_uri())
    assert wrong == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    context.close()


def test_layers_are_sorted_and_filtered(browser: Any, run: RunResult) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto((run.folder / "report.html").as_uri())
    assert run.report is not None
    counts = {str(one["index"]): one["instructions"] for one in run.report["layers"]}

    def indices() -> list[str]:
        found: list[str] = page.eval_on_selector_all(
            "#layers tbody:not([hidden])", "layers => layers.map(layer => layer.rows[0].cells[0].textContent)"
        )
        return found

    page.click("#layers th:nth-child(5)")
    assert [counts[index] for index in indices()] == sorted(counts.values(), reverse=True)
    assert page.get_attribute("#layers th:nth-child(5)", "aria-sort") == "descending"
    page.click("#layers th:nth-child(5)")
    assert [counts[index] for index in indices()] == sorted(counts.values())
    page.focus("#layers th:nth-child(1)")
    page.keyboard.press("Enter")
    assert indices() == sorted(counts, key=int)
    page.fill("#filter", "fully_connected")
    wanted = [str(one["index"]) for one in run.report["layers"] if one["op"] == "fully_connected"]
    assert indices() == wanted and page.text_content("#shown") == f"{len(wanted)} of {len(counts)}"
    page.fill("#filter", "")
    assert len(indices()) == len(counts)
    page.click(".network a >> nth=3")
    assert page.url.endswith("#layer-3")
    page.close()


@pytest.mark.parametrize("width", [400, 800, 801, 1001, 1400])
def test_a_board_is_seen_without_scrolling_sideways(browser: Any, pages: dict[str, Path], width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(pages["fit"].as_uri())
    assert page.eval_on_selector(".wide", "box => box.scrollWidth - box.clientWidth") == 0
    shown = page.eval_on_selector_all("th", "all => all.filter(one => one.offsetWidth).map(one => one.textContent)")
    assert {"verdict", "board", "RAM", "ROM", "estimated time"} <= set(shown)
    page.close()
