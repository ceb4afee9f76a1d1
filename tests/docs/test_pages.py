"""Commands and recipes on the pages of docs/ run as they stand; the site has all pages, links lead somewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stages.support.system.installation import INSTALLATION as ROOT
from stages.support.system.installation import is_clone

DOCS = ROOT / "docs"
# Those whose `sh` blocks are one session, from the clone's folder on.
SESSIONS = ("tutorials/cortex_m.md", "tutorials/riscv_isa.md", "explanation/store.md")
# What stands on a page for a clone is in the environment of these tests already.
_READY = re.compile(r"^(\./bootstrap |source \.venv/bin/activate$)", re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that looks like the clone. Files that a session writes next to it are deleted with the test."""
    folder = tmp_path / "clone"
    shutil.copytree(
        ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", ".firmline", "build", "__pycache__", ".*_cache")
    )
    (folder / ".firmline").mkdir()
    for built in ("spike", "qemu"):
        if (ROOT / ".firmline" / built).is_dir():
            (folder / ".firmline" / built).symlink_to(ROOT / ".firmline" / built)
    program = tmp_path / "bin/doit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} -P -m pipeline "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("page", SESSIONS)
def test_a_session_runs(page: str, clone: Path) -> None:
    script = "\n".join(["set -eu", *(_READY.sub("", block) for block in blocks(page, "sh"))])
    assert script.count("doit ") > 3
    environment = {**os.environ, "PATH": f"{clone.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    if page.endswith("store.md"):
        script = script.replace("set -eu", "set -eu\ndoit run digits_rvp:import")
    done = subprocess.run(
        ["bash", "-c", script], cwd=clone, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr}"


def test_all_pages_are_in_the_navigation() -> None:
    def named(entry: Any) -> list[str]:
        if isinstance(entry, dict):
            return [name for value in entry.values() for name in named(value)]
        return [name for one in entry for name in named(one)] if isinstance(entry, list) else [entry]

    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(named(navigation)) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_the_site_is_built(tmp_path: Path) -> None:
    """Strictly: a link to a missing page or heading fails."""
    pytest.importorskip("zensical", reason="./bootstrap --with docs pytest runs it")
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site/tutorials/cortex_m/index.html").is_file()


def test_links_between_pages_lead_somewhere() -> None:
    assert is_clone()
    for path in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)", path.read_text()):
            assert (path.parent / target).is_file(), (path.name, target)


def test_every_page_ends_with_a_link_to_the_next() -> None:
    for path in DOCS.rglob("*.md"):
        last = path.read_text().rstrip().splitlines()[-1]
        link = re.fullmatch(r"Next: \[[^\]]+\]\((\S+\.md)\)", last)
        assert link and (path.parent / link[1]).resolve() in {*DOCS.resolve().rglob("*.md")} - {path.resolve()}, path


def test_the_index_describes_every_page() -> None:
    text = (DOCS / "index.md").read_text()
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"index.md"}
    assert pages == set(re.findall(r"\]\(([\w./-]+\.md)\)", text.rpartition("Next:")[0]))


def test_the_glossary_defines_each_term_once_in_order() -> None:
    text = (DOCS / "glossary.md").read_text()
    definitions, _, renames = text.partition("## Former names")
    terms = re.findall(r"^### (.+)$", definitions, re.MULTILINE)
    tables = [
        re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:] for table in renames.split("\n\n") if "|---" in table
    ]
    assert len(tables) == 2
    for names in (terms, *tables):
        folded = [name.lower() for name in names]
        assert len(folded) > 15
        assert folded == sorted(set(folded))
    entries = re.split(r"^### .+$", definitions, flags=re.MULTILINE)[1:]
    assert all(1 <= len(entry.strip().splitlines()) <= 3 for entry in entries)
    assert not {name.lower() for name in terms} & {name.lower() for name in tables[0]}
