"""Rows of Firmline's own networks: their firmware is made by the recipe's stages."""

import re
from pathlib import Path
from threading import Lock

from pipeline.errors import PipelineError
from pipeline.runs.cache import StoreCache
from pipeline.runs.session import Session
from pipeline.runs.workspace import Workspace
from stages.backends.timing.silicon import Measurement
from stages.base import StageError

_NEXT = re.compile(r" (?=(?:set|model)=)")
_LAST = "simulate"
_ONE = Lock()


def built_firmware(row: Measurement, target: str, workspace: Workspace) -> Path:
    """Return the firmware of a row's recipe for a target's simulator.

    The input of its first inference is beside it. `arguments.options` of the row are its overrides, as typed. Raises
    StageError.
    """
    from stages.delivery.bench.silicon.run import firmware

    variables = {"target": target, **overrides(str(row.arguments.get("options", "")))}
    try:
        with _ONE:  # runs of one recipe share its log
            plan = workspace.plan(row.run, variables, _LAST)
            session = Session(workspace, plan, None, _LAST, record=False)
            try:
                for action in session.plan:
                    if not session.is_done(action):
                        session.run(action)
            finally:
                session.close()
    except PipelineError as error:
        raise StageError(str(error)) from None
    compiled, simulated = session.folders["compile"], session.folders[_LAST]
    name = "firmware.elf" if plan.loaded is None or plan.loaded.target.simulated is None else "simulated.elf"
    return firmware(compiled / name, simulated / "inputs.bin", StoreCache(workspace, "bench"))


def overrides(typed: str) -> dict[str, str]:
    """Return overrides by name: `set=a=1 set=b=2` in `arguments.options` is {"set": "a=1,b=2"}."""
    values: dict[str, str] = {}
    for text in filter(None, _NEXT.split(typed)):
        name, _, value = text.partition("=")
        values[name] = f"{values[name]},{value}" if name in values else value
    return values
