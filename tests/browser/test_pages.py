"""The pages that runs leave, in Chromium: nothing fails, nothing overflows, sorting and filtering work."""

from __future__ import annotations

import json
import re
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
from stages.report.audio.picture import audio_svg
from stages.report.audio.section import audio_section
from stages.report.config import DetectionOptions
from tests.unit.report.test_audio import OFF, ON, SCORE, read

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


@pytest.mark.parametrize("width", [400, 1400])
def test_labels_of_pictures_can_be_read(browser: Any, run: RunResult, width: int, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((run.folder / "report.html").as_uri())
    heights = "texts => texts.map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"
    shown = page.eval_on_selector_all(".arena text, .rom text", heights)
    assert len(shown) > 20 and min(shown) > 9
    series = read(tmp_path, {"a.wav": ([[ON], [OFF]], [])}, [SCORE])
    page.set_content(audio_svg(series, audio_section(series, DetectionOptions(), ())))
    assert min(page.eval_on_selector_all(".audio text", heights)) > 9
    page.close()


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return run_recipe("digits_ptq", build=tmp_path_factory.mktemp("quantized"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_ranges_can_be_read_without_scrolling(browser: Any, quantized: RunResult, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto((quantized.folder / "report.html").as_uri())
    heights = "texts => texts.map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"
    assert min(page.eval_on_selector_all(".ranges text", heights)) > 9
    assert page.eval_on_selector(".wide:has(.ranges)", "box => box.scrollWidth - box.clientWidth") == 0
    ink = page.evaluate("getComputedStyle(document.body).color")
    fills = "texts => [...new Set(texts.map(text => getComputedStyle(text).fill))]"
    assert page.eval_on_selector_all(".ranges text:not(.quiet)", fills) == [ink]
    # Nothing has the paper of the other scheme, and the picture as a file is as dark or light as the page.
    assert page.eval_on_selector_all(".ranges rect:not(.seen)", "found => found.length") == 0
    page.goto((quantized.folder / "ranges.svg").as_uri())
    assert page.eval_on_selector_all(".ranges text:not(.quiet)", fills) == [ink]
    context.close()


@pytest.mark.parametrize("width", [400, 1000, 1400])
def test_a_layer_is_seen_without_scrolling_sideways(browser: Any, run: RunResult, width: int) -> None:
    """Its name, cost and reason; the other candidates open below it, as wide as the table."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((run.folder / "report.html").as_uri())
    for cell in (".layer", ".bar", ".kernel", ".why"):
        box = page.locator(f"#layer-0 {cell}").bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width
    more = page.locator("#why-0")
    assert not more.is_visible()
    page.click("#layer-0 .why button")
    box = more.bounding_box()
    assert box is not None and box["width"] > 0.7 * min(width, page.locator("#layers").bounding_box()["width"])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.parametrize("width", [400, 800, 801, 1001, 1400])
def test_a_board_is_seen_without_scrolling_sideways(browser: Any, pages: dict[str, Path], width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(pages["fit"].as_uri())
    assert page.eval_on_selector(".wide", "box => box.scrollWidth - box.clientWidth") == 0
    shown = page.eval_on_selector_all("th", "all => all.filter(one => one.offsetWidth).map(one => one.textContent)")
    assert {"verdict", "board", "RAM", "ROM", "estimated time"} <= set(shown)
    page.close()


@pytest.mark.parametrize("width", [400, 941, 1381])
def test_long_names_leave_room_for_the_reason(browser: Any, run: RunResult, width: int, tmp_path: Path) -> None:
    """Names of operators and kernels break at underscores, also in the reason, as those of signal operators must."""
    page, long = browser.new_page(viewport={"width": width, "height": 900}), tmp_path / "long.html"
    text = (run.folder / "report.html").read_text()
    assert "fully_<wbr>connected</td>" in text
    name = "signal_<wbr>filter_<wbr>bank_<wbr>spectral_<wbr>subtraction"
    for cell in ("operator", "kernel"):
        text = text.replace(f'<td class="{cell}">', f'<td class="{cell}">{name} ')
    reason = '<td class="why"><button[^>]*>'
    assert re.search(f"{reason}[^<]*_<wbr>", text)
    long.write_text(re.sub(f"({reason})", rf"\g<1>137.7 % dearer than {name} ", text))
    page.goto(long.as_uri())
    box = page.locator("#layer-0 .why").bounding_box()
    assert box is not None and box["x"] + box["width"] <= width
    page.close()


def test_the_verdict_is_first_then_advice_then_figures(browser: Any, run: RunResult) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 900})
    page.goto((run.folder / "report.html").as_uri())
    places = [page.locator(part).first.bounding_box()["y"] for part in (".verdict", ".advice", ".cards", "#layers")]
    assert places == sorted(places)
    assert run.report is not None
    commands = [entry["command"] for entry in run.report["advice"] if entry["command"]]
    assert commands and page.locator(".advice code").all_text_contents() == commands
    assert all(command.startswith("doit ") and "digits_rvp" in command for command in commands)
    page.close()


def test_a_term_leads_to_its_definition(browser: Any, run: RunResult) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.goto((run.folder / "report.html").as_uri())
    assert not page.locator("#term-arena").is_visible()
    page.click("h2 .term >> text=Arena")
    assert page.locator("#term-arena").is_visible()
    page.close()
