"""Listings of docs/how-to/fit.md: `doit fit` of a network of the zoo."""

import json
import os
import re
import textwrap
from functools import cache
from io import StringIO

from pipeline.commands.fit.measure import measure
from pipeline.commands.fit.request import Request, request_of
from pipeline.commands.fit.row import Row, as_record, ordered
from pipeline.commands.fit.table import fit_table
from pipeline.plugins.registry import registry_of
from pipeline.project import Project
from pipeline.runs.workspace import Workspace
from pipeline.terminal.progress import ProgressDisplay
from stages.support.system.installation import INSTALLATION as ROOT

PAGE = ROOT / "docs/how-to/fit.md"
STORE = ROOT / (os.environ.get("FIRMLINE_STORE") or ".firmline/store")
NETWORK, BOARDS, RECORD = "ds_cnn", ("nucleo-f446re", "rpi-pico2", "nrf52840-dk", "rpi-pico"), "longan-nano"
WIDTH = 140


@cache
def measured(network: str) -> tuple[Request, list[Row]]:
    """A network of the zoo on all boards of the catalogue. Cold, it takes minutes."""
    project = Project(ROOT)
    request = request_of([], {"model": f"zoo:{network}"}, project, registry_of(project))
    with Workspace(root=project, store=STORE, build=ROOT / "build/fit") as workspace:
        return request, measure(request, workspace, ProgressDisplay(StringIO()), jobs=2)


def renewed(page: str) -> str:
    """The page with the figures of today."""
    request, rows = measured(NETWORK)
    table = fit_table(request, ordered(row for row in rows if row.board in BOARDS), WIDTH).plain()
    (record,) = (json.dumps([as_record(row)], ensure_ascii=False) for row in rows if row.board == RECORD)
    listed = textwrap.fill(record, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    page = re.sub(rf"^{NETWORK}: fits .*?(?=^build/fit)", lambda _: table, page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<=```json\n).*?(?=\n```)", lambda _: listed, page, flags=re.DOTALL)
