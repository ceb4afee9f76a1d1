"""report.html: what it shows of a report, and that it is one file without anything from elsewhere."""

import re
import struct
import xml.etree.ElementTree as ET
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

from pipeline.runs.report_page import add_run_section
from stages.report.html import RUN
from stages.report.html.extras import Extras
from stages.report.html.memory import arenas
from stages.report.html.page import _cards, page, verdict
from stages.report.html.rom import HEIGHT, WIDTH, boxes, groups
from stages.report.html.samples import image_of, png, shown_input
from stages.report.html.terms import DEFINITIONS
from stages.report.rows import columns, summary
from stages.support.system.installation import INSTALLATION

_BLOCK = {"part": "weights", "symbol": "model_weights", "region": "rom", "bytes": 600, "loaded_from": ""}
HOSTILE = 'a"<script>alert(1)</script>\x1b[31m\u202e'


def layer(index: int, **changes: Any) -> dict[str, Any]:
    usual = {
        "index": index,
        "name": f"net/block_{index}/Relu;bias",
        "op": "conv2d",
        "shape_out": [1, 4, 4, 8],
        "macs": 1000,
        "kernel": "generic.conv2d",
        "layout": "NHWC",
        "instructions": 500 * (index + 1),
        "why": "cheapest of 2 (counted)",
        "alternatives": [],
        "distance": None,
    }
    return {**usual, **changes}


def buffer(name: str, offset: int, size: int, first: int, last: int, **changes: Any) -> dict[str, Any]:
    usual = {"kind": "tensor", "region": "ram", "name": name}
    return {**usual, "offset": offset, "bytes": size, "first": first, "last": last, **changes}


def report(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "model": {"name": "net", "sha256": "ab", "signature": None, "macs": 3000},
        "target": "cortex-m4",
        "board": None,
        "cycles": None,
        "quantization": None,
        "warnings": [],
        "verify": verified(),
        "instructions": {"total": 3000, "minimum": 3000, "maximum": 3000},
        "legalize": {"tensors": {"int8": 4}, "widened": []},
        "simplify": {"macs": 3000, "rewrites": []},
        "memory": {
            "arena_bytes": 300,
            "rom_bytes": 900,
            "ram_bytes": 400,
            "stack_bytes": 64,
            "weights_bytes": 600,
            "model_rom_bytes": 800,
            "regions": [],
            "blocks": [_BLOCK],
        },
        "layers": [layer(0), layer(1), layer(2)],
        "arena": [buffer("in", 0, 100, 0, 0), buffer("x", 100, 200, 0, 1), buffer("scratch:1:rows", 0, 90, 1, 1)],
        "weights": [{"name": "000.w", "layers": [0], "region": "rom", "offset": 0, "bytes": 600}],
        "symbols": [
            {"name": "model_weights", "section": ".rodata", "bytes": 600, "file": "weights.S"},
            {"name": "conv", "section": ".text", "bytes": 300, "file": "kernels/generic/gemm.c"},
            {"name": "model_arena", "section": ".bss", "bytes": 300, "file": "model.c"},
        ],
    }
    return {**usual, **changes}


def verified(**changes: Any) -> dict[str, Any]:
    usual = {"reference": "LiteRT", "inputs": 4, "outputs_checked": 40, "mismatches": 0, "layers_checked": 3}
    return {**usual, "float": None, "accuracy": None, **changes}


def distance(differing: int) -> dict[str, Any]:
    one = {"values": 40, "differing": differing, "largest": 1, "share": differing / 40}
    return {"outputs": one, "layers": one}


class Page(HTMLParser):
    """Tags that are open, attributes that were seen, and what is loaded from elsewhere."""

    VOID = frozenset({"meta", "input", "img", "br", "link", "path", "rect"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attributes if name in ("src", "href") and tag != "a"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_tags_are_closed_and_nothing_is_loaded() -> None:
    pixels = np.arange(100, dtype=np.int8).reshape(1, 10, 10, 1)
    made = page(report(), Extras([(0, 1), (1, 2), (0, 2)], [shown_input("in", pixels)]))
    found = Page(made)
    pictures = re.findall(r"<svg.*?</svg>", made, re.DOTALL)
    assert len(pictures) == 3
    for picture in pictures:
        ET.fromstring(picture.replace("&nbsp;", " "))
    assert all(one.startswith("data:image/png;base64,") for one in found.loaded) and found.loaded
    assert "http://" not in made and "https://" not in made


def test_names_are_no_markup() -> None:
    hostile = report(
        layers=[layer(0, name=HOSTILE, why=HOSTILE)],
        warnings=[HOSTILE],
        arena=[buffer(HOSTILE, 0, 100, 0, 0)],
        symbols=[{"name": HOSTILE, "section": ".text", "bytes": 9, "file": HOSTILE}],
        model={"name": HOSTILE, "sha256": "ab", "signature": None, "macs": 0},
    )
    made = page(hostile, Extras([], [shown_input(HOSTILE, np.zeros((1, 3), np.int8))], fed=HOSTILE))
    assert "<script>alert" not in made
    assert "\x1b" not in made and "\u202e" not in made


@pytest.mark.parametrize(
    ("verify", "kind", "text"),
    [
        (verified(), "good", "All 40 output values match the reference, byte for byte"),
        (verified(mismatches=3), "bad", "3 of 40 output values differ"),
        (verified(float={"tolerance": 1e-4, "max_relative": 1e-6}), "good", "Within 0.0001 of the reference"),
        (None, "open", "Outputs were not compared"),
        (*(verified(without_reference=["a"]), "open"),
         "40 output values match the reference, byte for byte; 1 of 5 inferences was not verified"),
        (*(verified(float={"tolerance": 1e-4, "max_relative": 1e-6}, tied={"b": "t"}), "open"),
         "40 output values within 0.0001 of the reference; 1 of 5 inferences was not verified"),
        (
            *(verified(distance=distance(3)), "open"),
            (
                "40 output values match the reference, byte for byte; "
                "3 of 40 values differ from the reference, by at most 1"
            ),
        ),
    ],
)  # fmt: skip
def test_the_verdict_comes_first(verify: dict[str, Any] | None, kind: str, text: str) -> None:
    assert verdict(report(verify=verify)) == (kind, text)
    text = escape(text)
    assert page(report(verify=verify), Extras()).index(text) < page(report(verify=verify), Extras()).index("<h2>")


@pytest.mark.parametrize("names", [("flash", "ram"), ("xip", "ram_without_rom")])
def test_ram_and_rom_stand_against_the_board(names: tuple[str, str]) -> None:
    regions = [
        {"name": name, "length": length, "written": written}
        for name, length, written in zip(names, (1800, 800), (False, True), strict=True)
    ]
    board = {"title": "B", "clock": 1_000_000, "source": "", "core": "cortex-m4", "machine": "m", "moved": []}
    made = page(report(board=board, memory={**report()["memory"], "regions": regions}), Extras())
    assert "50.0 % of 1,800" in made and "50.0 % of 800" in made


def test_most_alive_is_marked() -> None:
    (found,) = arenas(report())
    assert (found.peak, found.bytes) == (0, 300)
    assert [name for name, _ in found.alive] == ["x", "in"]
    assert [block.at_peak for block in found.blocks] == [True, True, False]
    later = report(arena=[*report()["arena"], buffer("y", 300, 100, 1, 2)])
    assert next(iter(arenas(later))).peak == 1


def test_rom_is_what_lies_in_it() -> None:
    """Also if a block of the arena has a section of its own."""
    arena = {"part": "arena", "symbol": "model_arena_l1", "region": "l1", "bytes": 99, "loaded_from": ""}
    symbol = {"name": "model_arena_l1", "section": ".arena_l1", "bytes": 99, "file": "model.c"}
    memory = {**report()["memory"], "blocks": [_BLOCK, arena]}
    found = groups(report(memory=memory, symbols=[*report()["symbols"], symbol]))
    assert {name: [(part.name, part.bytes) for part in parts] for name, parts in found.items()} == {
        "weights": [("0 conv2d", 600)],
        "kernels/generic": [("conv", 300)],
    }
    leaves = [box for box in boxes(found) if not box.is_group]
    assert all(box.place.x >= 0 and box.place.x + box.place.width <= WIDTH + 1e-6 for box in leaves)
    assert all(box.place.y >= 0 and box.place.y + box.place.height <= HEIGHT + 1e-6 for box in leaves)


def test_an_image_can_be_read() -> None:
    values = np.arange(8 * 9 * 3, dtype=np.int64).reshape(1, 8, 9, 3)
    pixels = image_of(values)
    assert pixels is not None and (int(pixels.min()), int(pixels.max())) == (0, 255)
    data = png(pixels)
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (9, 8)
    start = data.index(b"IDAT")
    rows = zlib.decompress(data[start + 4 : start + 4 + struct.unpack(">I", data[start - 4 : start])[0]])
    assert b"".join(rows[1 + n * 28 : (n + 1) * 28] for n in range(8)) == pixels.tobytes()
    assert image_of(np.zeros((1, 49, 10, 2))) is None and image_of(np.zeros((1, 640))) is None


def test_a_run_is_put_into_the_page() -> None:
    made = page(report(), Extras())
    assert made.count(RUN) == 1
    stages = [{"kind": "import", "key": "abcd", "cached": True, "seconds": 1.25}]
    whole = add_run_section(made, "doit run 'a<b' target=x", {"stages": stages, "tools": {"gcc": "12.2"}})
    assert RUN not in whole and "doit run &#x27;a&lt;b&#x27; target=x" in whole
    assert "<code>abcd</code>" in whole and "<dt>gcc</dt><dd>12.2</dd>" in whole
    Page(whole)


def test_an_engine_is_counted_in_cycles_and_nowhere_in_instructions() -> None:
    units = {"engine": 900, "dma": 500, "core": 1500, "waiting": 1500}
    cycles = {"total": 3000, **units, "predicted": {"total": 2900}, "search": None, "layers": [], "timeline": []}
    found = report(cycles=cycles, board={"clock": 1_000_000})
    told = [line for line in summary({**found, "board": None}) if line[0] in ("cycles", "instructions")]
    titles = [card["title"] for card in _cards(found)]
    assert titles.count("cycles") == 1 and "instructions" not in titles
    assert [(card["title"], card["value"], card["note"]) for card in _cards(found)[:2]] == [
        ("latency, simulated", "3 ms", "3,000 cycles at 1 MHz"),
        ("cycles", "3,000", "1.000 per MAC"),
    ]
    assert "cycles" in columns(found) and "instructions" not in columns(found)
    assert len(told) == 1 and told[0][1].startswith("3,000, 1.000 per MAC (engine 900, ")


@pytest.mark.parametrize(
    ("right", "total", "text"), [(4, 4, "100.0 %"), (9_999, 10_000, "99.9 %"), (352, 360, "97.8 %"), (0, 9, "0.0 %")]
)
def test_accuracy_is_a_share_of_samples(right: int, total: int, text: str) -> None:
    accuracy = {"images": total, "ours": right / total, "litert": 1.0, "agree": right / total}
    found = report(verify=verified(accuracy=accuracy))
    (card,) = (card for card in _cards(found) if card["title"] == "accuracy")
    assert (card["value"], card["note"]) == (text, f"{right:,} of {total:,} samples")
    line = f"{text} ({right:,} of {total:,} samples), LiteRT 100.0 %, same class in {right:,} of {total:,}"
    assert dict(summary(found))["accuracy"] == line


def test_terms_are_those_of_the_glossary() -> None:
    glossary = (INSTALLATION / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert DEFINITIONS.items() <= dict(re.findall(r"^### (.+)\n(.+)$", glossary, re.MULTILINE)).items()
    text = page(report(), Extras())
    links = set(re.findall(r'href="#(term-[^"]+)"', text))
    assert {"term-arena", "term-layer", "term-ROM"} <= links
    assert links <= set(re.findall(r'<dt id="([^"]+)"', text))
