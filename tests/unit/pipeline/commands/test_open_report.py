"""`doit open`: the report of a recipe, a target, a variant and a matrix, with and without a browser."""

import json
import os
from pathlib import Path

import pytest

from tests.support.command_lines import Ended, run_all

MATRIX = "schema: 1\nmodel: {zoo: ds_cnn}\nmatrix: {target: [host, cortex-m4]}\n"
PAGES = ("mine/host/report.html", "mine/cortex-m4/report.html", "grid/matrix.html", "grid/host/report.html")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose build folder has the pages of earlier runs; the last one is the newest."""
    root = tmp_path / "project"
    (root / "recipes").mkdir(parents=True)
    (root / "pipeline.yaml").write_text("schema: 1\n")
    (root / "recipes/mine.yaml").write_text("schema: 1\ntarget: host\nmodel: {zoo: ds_cnn}\n")
    (root / "recipes/grid.yaml").write_text(MATRIX)
    for number, name in enumerate(PAGES):
        page = root / "build" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("<p>")
        os.utime(page, (number, number))
    return root


def opened(folder: Path, *lines: str) -> list[Ended]:
    return run_all([["open", *line.split()] for line in lines], folder.parent, at=folder)


def test_paths_are_printed_without_a_browser(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    asked = {
        "mine": PAGES[:1],
        "mine target=host,cortex-m4": PAGES[:2],
        "grid": PAGES[2:3],
        "grid:host": PAGES[3:],
        "recipe=mine,grid": (PAGES[0], PAGES[2]),
        "": PAGES[3:],
    }
    for ended, pages in zip(opened(folder, *asked), asked.values(), strict=True):
        assert (ended.code, ended.stderr) == (0, ""), ended
        assert ended.stdout.split() == [f"build/{page}" for page in pages], ended
    (ended,) = opened(folder, "mine --json")
    assert json.loads(ended.stdout) == [{"file": f"build/{PAGES[0]}", "opened": False}]
    errors = {
        "mine target=rv32-rvp": "recipe 'mine' has no report: build/mine/rv32-rvp/report.html does not exist\n"
        "`doit run mine target=rv32-rvp` writes it\n",
        "grid:cortex-m4": "recipe 'grid:cortex-m4' has no report: build/grid/cortex-m4/report.html does not exist\n"
        "`doit run grid:cortex-m4` writes it\n",
        "min": "unknown recipe 'min'; did you mean 'mine'?",
        "mine:emit": "'mine:emit' is a stage, not a recipe",
        "mine model=x.tflite": "doit open takes no 'model='",
    }
    for ended, message in zip(opened(folder, *errors), errors.values(), strict=True):
        assert ended.code == 1 and ended.stderr.startswith(f"ERROR: {message}"), ended


def test_a_browser_gets_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = folder.parent / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {folder.parent}/urls\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    (ended,) = opened(folder, "mine --json")
    assert json.loads(ended.stdout)[0]["opened"]
    assert (folder.parent / "urls").read_text().split() == [(folder / "build" / PAGES[0]).as_uri()]
