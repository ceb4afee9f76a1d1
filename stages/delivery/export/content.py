"""What an export has in all forms: the sources with names of their own, a test, and facts for the templates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.delivery.export.names import SYMBOLS, renamed
from stages.delivery.export.sample import Sample, rows, sample
from stages.delivery.export.symbols import defined
from stages.support.system.below import below
from stages.support.system.scratch import temporary_folder

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.delivery.export.form import Form

_C_TYPES = {"float32": "float", "bool": "bool"}
#: Files of the emitted folder that are for its harness, or say how it is built by itself.
_LEFT = {"model_trace.c", "model_trace.h", "CMakeLists.txt"}


@dataclass(frozen=True)
class Content:
    """One network for one target.

    name      what everything of it begins with: a C identifier, emit's prefix
    title     the recipe
    target    what the sources were written for
    model     the content of model.json
    sources   the emitted sources by their paths, with names that no other export has
    sample    a test
    verified  what the outputs were compared with, '' where the recipe leaves that out
    version   Firmline's
    caller    whether the arenas are handed in
    overrides what of the recipe was given otherwise, `model=… set=…`, or ''
    """

    name: str
    title: str
    target: Target
    model: Mapping[str, Any]
    sources: Mapping[str, bytes]
    sample: Sample
    verified: str
    version: str
    caller: bool
    overrides: str = ""

    @property
    def compiled(self) -> list[dict[str, Any]]:
        """The files that are compiled: {path, flags}."""
        listed = [*self.model["sources"]["c"], *self.model["sources"]["assembly"]]
        return [{"path": one, "flags": []} if isinstance(one, str) else one for one in listed]

    @property
    def flags(self) -> list[str]:
        """The compiler's flags that say for which core the code is."""
        return [flag for flag in self.target.compiler.flags if flag.startswith("-m")]

    @property
    def is_plain(self) -> bool:
        """Whether the sources are C for any core: no file of them refuses one."""
        return b"#error" not in self.sources.get("layers.h", b"")

    @property
    def is_stateful(self) -> bool:
        """Whether the network keeps something from one run to the next."""
        return "state" in self.model

    def facts(self) -> dict[str, Any]:
        """For templates."""
        model, macro = self.model, self.name.upper()
        arenas = [block for block in model["blocks"] if block["part"] == "arena"]
        handed = [one["symbol"] for one in arenas]
        handed += [model["state"]["symbol"]] if self.is_stateful else []
        return {
            "name": self.name,
            "macro": macro,
            "title": self.title,
            "overrides": self.overrides,
            "target": self.target.name,
            "core": self.target.core,
            "network": model["name"],
            "flags": [] if self.is_plain else self.flags,
            "files": self.compiled,
            "uses_math": any(b"<math.h>" in content for content in self.sources.values()),
            "ports": [*_ports("input", model, self.sample.inputs), *_ports("output", model, self.sample.outputs)],
            "inputs": _ports("input", model, self.sample.inputs),
            "outputs": _ports("output", model, self.sample.outputs),
            "floats": any(one["dtype"] == "float32" for one in (*model["traces"], *model["inputs"], *model["outputs"])),
            "sample": self.sample.name,
            "steps": self.sample.steps,
            "stateful": self.is_stateful,
            "caller": self.caller,
            "handed": [{"symbol": symbol, "macro": symbol.upper()} for symbol in handed] if self.caller else [],
            "blocks": [block for block in model["blocks"] if len(model["blocks"]) > 2 or block["region"]],
            "arena_bytes": model["arena_bytes"],
            "state_bytes": model["state"]["bytes"] if self.is_stateful else 0,
            "weights_bytes": model["weights_bytes"],
            "verified": self.verified,
            "version": self.version,
        }


def content_of(
    artifacts: Mapping[str, Path],
    target: Target,
    *,
    form: Form,
    title: str,
    caller: bool,
    version: str,
    overrides: str = "",
) -> Content:
    """From the folders that the stages emit, simulate and, where there is one, verify left.

    Raises StageError for a network that the form does not take, and for sources that cannot be renamed.
    """
    emitted = artifacts["emit"]
    model = json.loads((emitted / "model.json").read_text())
    verdict = json.loads((artifacts["verify"] / "verify.json").read_text()) if "verify" in artifacts else {}
    skipped = [name for key in ("without_reference", "overflowed", "tied") for name in verdict.get(key, ())]
    found = Content(
        name=model["prefix"],
        title=title,
        target=target,
        model=model,
        sources=_with_own_names(emitted / "src", model, target) if not _refused(form, target) else {},
        sample=sample(artifacts["simulate"], model, skipped),
        verified=_reference(verdict),
        version=version,
        caller=caller,
        overrides=overrides,
    )
    reason = _refused(form, target) or _flagged(form, found) or form.why_not(found)
    if reason:
        raise StageError(f"{title} cannot be exported so: {reason}", hint="`doit export` lists the forms")
    return found


def _refused(form: Form, target: Target) -> str:
    if target.accelerator is None or form.places_memory:
        return ""
    engine = target.accelerator
    return (
        f"its layers run on {engine.kind}, whose memory {engine.memory} a linker script has to place\n"
        f"as=cmake has one; for other forms export it for the core alone, target={target.core}"
    )


def _flagged(form: Form, content: Content) -> str:
    flagged = next((one for one in content.compiled if one["flags"]), None)
    if flagged is None or form.gives_flags:
        return ""
    return (
        f"{flagged['path']} has to be compiled with {' '.join(flagged['flags'])}, and the form gives no file flags\n"
        "cmake, zephyr and esp-idf do; target=host writes plain C"
    )


def _reference(verdict: Mapping[str, Any]) -> str:
    found = verdict.get("reference", "")
    return found if isinstance(found, str) else str(found)


def _with_own_names(src: Path, model: Mapping[str, Any], target: Target) -> dict[str, bytes]:
    prefix = model["prefix"]
    files = {
        path.relative_to(src).as_posix(): path.read_bytes()
        for path in sorted(src.rglob("*"))
        if path.is_file() and path.name not in _LEFT
    }
    made = renamed(files, defined(src, model, target), prefix)
    with temporary_folder("export") as folder:
        for name, content in made.items():
            place = below(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        left = sorted(name for name in defined(folder, model, target) if not name.startswith(f"{prefix}_"))
    if left:
        raise StageError(
            f"{', '.join(left[:4])} would clash with those of another export: they are not named in {SYMBOLS}",
            hint="a kernel's C or assembly makes the name at compile time; it has to be written out",
        )
    return made


def _ports(kind: str, model: Mapping[str, Any], steps: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Inputs or outputs with the values of each step as lines of an initializer."""
    found = []
    for number, port in enumerate(model[f"{kind}s"]):
        found.append(
            {
                "kind": kind,
                "number": number,
                "macro": f"{model['prefix'].upper()}_{kind.upper()}{number}",
                "array": f"{model['prefix']}_test_{kind}{number}",
                "ctype": _C_TYPES.get(port["dtype"], f"{port['dtype']}_t"),
                "dtype": port["dtype"],
                "shape": "x".join(map(str, port["shape"])) or "1",
                "scale": port["scale"],
                "zero_point": port["zero_point"],
                "count": len(steps[0][number]),
                "steps": [rows(step[number]) for step in steps],
            }
        )
    return found
