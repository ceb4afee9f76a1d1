"""Counts of calls, stored as artifacts that all networks, recipes and machines share."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache as remembered
from pathlib import Path
from typing import Any

from stages.backends.kernels.digest import kernel_digest
from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.spec import Target
from stages.base import Cache, no_progress
from stages.count.canonical import canonical, description
from stages.count.firmware import Counted, counted
from stages.support.messages.stage_error import StageError
from stages.tensorize.costs import Call, CallRom, KernelCall

_FILE = "count.json"
_START_SECONDS = 10  # an empty program takes less than one
_STAGES = Path(__file__).resolve().parents[1]
# Code beside the kernel that generates the layer's function, and code that counts it.
_CODE = (
    *("lower/codegen/*.py", "tensorize/schedule.py", "tensorize/lowering.py"),
    *("count/canonical.py", "count/code.py", "count/firmware.py"),
)
# Tools that no count depends on.
_IRRELEVANT_TOOLS = frozenset({"jinja2", "pyelftools", "linker", "scipy"})


@dataclass(frozen=True)
class Counter:
    """Counts calls on the simulator of `target`: a core alone, or a board for cycles.

    cache  where counts and objects are stored, None: nowhere
    tools  versions of the tools of tensorize, compile and simulate, by name
    rom    ROM bytes of the counted calls
    """

    target: Target
    cache: Cache | None
    tools: Mapping[str, str]
    in_cycles: bool = False
    log: Callable[[str], None] = lambda line: None
    progress: Callable[..., None] = no_progress
    rom: dict[Call, CallRom] = field(default_factory=dict)

    def __call__(self, calls: Sequence[KernelCall]) -> dict[Call, int]:
        """Return the counts of the calls by key.

        Omits calls that exceed every memory, do not finish, or compute in float32. Raises StageError for a kernel with
        a wrong output, and for a core on whose simulator nothing runs.
        """
        calls = [call for call in calls if not call.view.op.approximate]
        counts: dict[Call, int] = {}
        missing: dict[int, tuple[KernelCall, KernelCall]] = {}
        keys = [self._ingredients(canonical(call, self.target)) for call in calls]
        for number, call in enumerate(calls):
            stored = None if self.cache is None else self.cache.find(keys[number])
            if stored is None:
                missing[number] = call, canonical(call, self.target)
            else:
                content = json.loads((stored / _FILE).read_text())
                counts[call.key] = int(content["count"])
                self.rom[call.key] = CallRom(**content["rom"])
        if missing and not self.rom:
            self._check_simulator()
        numbers = {id(call): number for number, (_, call) in missing.items()}
        results = counted(
            [call for _, call in missing.values()],
            self.target,
            in_cycles=self.in_cycles,
            cache=self.cache,
            tools=self.tools,
            log=self.log,
            progress=self.progress,
        )
        for call, takes in results:
            number = numbers[id(call)]
            key = missing[number][0].key
            counts[key], self.rom[key] = takes.count, takes.rom
            self._store(keys[number], call, takes)
        return counts

    def _check_simulator(self) -> None:
        """Raise StageError if an empty program does not run: then no call could be counted."""
        try:
            compile_and_run_c(self.target.in_simulator, (), "int main(void) { return 0; }", timeout=_START_SECONDS)
        except StageError as error:
            if error.at:
                raise
            core = self.target.core
            message = f"an empty program does not run on the simulator of core {core}: {error.message}"
            hint = "Correct `simulator`, `memory` or `compiler` of the core: they describe one machine."
            raise StageError(message, hint=hint, at=("cores", core, "simulator")) from None

    def _store(self, ingredients: Mapping[str, Any], call: KernelCall, takes: Counted) -> None:
        content = {"kernel": call.variant, "layer": call.signature, **asdict(takes)}

        def write(folder: Path) -> None:
            (folder / _FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

        if self.cache is not None:
            self.cache.get(ingredients, write)

    def _ingredients(self, call: KernelCall) -> dict[str, Any]:
        target = self.target
        core = target.model_dump(
            mode="json",
            include={"family", "isa", "abi", "word_bits", "vlen", "fpu", "extensions", "compiler", "simulator"},
        )
        if self.in_cycles:
            core |= target.model_dump(mode="json", include={"timing_model", "flash", "memory"})
        return {
            "stage": "kernel count",
            "kernel": call.variant,
            "code": {"kernel": kernel_digest(call.kernel), "shared": _shared_code(target.simulator.kind)},
            "layer": description(call.view),
            "core": core,
            "unit": "cycles" if self.in_cycles else "instructions",
            "tools": {name: version for name, version in sorted(self.tools.items()) if name not in _IRRELEVANT_TOOLS},
        }


@remembered
def _shared_code(simulator: str) -> str:
    """Return the SHA-256 of the code that all counts on a simulator depend on."""
    patterns = (*_CODE, f"backends/**/{simulator}/plugin/*")
    paths = sorted(path for pattern in patterns for path in _STAGES.glob(pattern) if path.is_file())
    text = "\0".join(f"{path.relative_to(_STAGES)}\0{path.read_text(encoding='utf-8')}" for path in paths)
    return hashlib.sha256(text.encode()).hexdigest()
