"""Content of an export in all forms: sources with unique names, a test, and facts for the templates."""

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
from stages.support.system.path_below import path_below
from stages.support.system.scratch import temporary_folder

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.delivery.export.form import Form

_C_TYPES = {"float32": "float", "bool": "bool"}
#: Files of the emitted folder that an export does not need: the harness and the build files.
_SKIPPED = {"model_trace.c", "model_trace.h", "CMakeLists.txt"}


@dataclass(frozen=True)
class Content:
    """A network for a target.

    name      prefix of all C names (emit's prefix)
    title     name of the recipe
    target    target of the sources
    model     content of model.json
    sources   emitted sources by path, with names that no other export has
    sample    test input and expected output
    verified  reference of the verification; '' if the recipe has no stage verify
    version   Firmline's version
    caller    whether the caller provides the arenas
    overrides overrides of the recipe, `model=… set=…`, or ''
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
        """Compiled files: {path, flags}."""
        files = [*self.model["sources"]["c"], *self.model["sources"]["assembly"]]
        return [{"path": file, "flags": []} if isinstance(file, str) else file for file in files]

    @property
    def flags(self) -> list[str]:
        """Compiler flags that select the core."""
        return [flag for flag in self.target.compiler.flags if flag.startswith("-m")]

    @property
    def is_plain(self) -> bool:
        """Whether the sources are plain C for any core."""
        return b"#error" not in self.sources.get("layers.h", b"")

    @property
    def is_stateful(self) -> bool:
        """Whether the network has state."""
        return "state" in self.model

    def facts(self) -> dict[str, Any]:
        """Return the variables of the templates."""
        model, macro = self.model, self.name.upper()
        arenas = [block for block in model["blocks"] if block["part"] == "arena"]
        symbols = [block["symbol"] for block in arenas]
        symbols += [model["state"]["symbol"]] if self.is_stateful else []
        tensors = (*model["traces"], *model["inputs"], *model["outputs"])
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
            "floats": any(tensor["dtype"] == "float32" for tensor in tensors),
            "sample": self.sample.name,
            "steps": self.sample.steps,
            "stateful": self.is_stateful,
            "caller": self.caller,
            "handed": [{"symbol": symbol, "macro": symbol.upper()} for symbol in symbols] if self.caller else [],
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
    """Read the content from the artifacts of emit, simulate and, optionally, verify.

    Raises StageError if the form does not support the network, or the sources cannot be renamed.
    """
    emitted = artifacts["emit"]
    model = json.loads((emitted / "model.json").read_text())
    verdict = json.loads((artifacts["verify"] / "verify.json").read_text()) if "verify" in artifacts else {}
    skipped = [name for key in ("without_reference", "overflowed", "tied") for name in verdict.get(key, ())]
    content = Content(
        name=model["prefix"],
        title=title,
        target=target,
        model=model,
        sources=_with_unique_names(emitted / "src", model, target) if not _refused(form, target) else {},
        sample=sample(artifacts["simulate"], model, skipped),
        verified=_reference(verdict),
        version=version,
        caller=caller,
        overrides=overrides,
    )
    reason = _refused(form, target) or _flagged(form, content) or form.why_not(content)
    if reason:
        raise StageError(f"{title} cannot be exported in this form: {reason}", hint="`doit export` lists the forms")
    return content


def _refused(form: Form, target: Target) -> str:
    if target.accelerator is None or form.places_memory:
        return ""
    engine = target.accelerator
    return (
        f"its layers run on {engine.kind}, whose memory {engine.memory} needs a linker script\n"
        f"as=cmake has one; for other forms, export for the core only: target={target.core}"
    )


def _flagged(form: Form, content: Content) -> str:
    flagged = next((file for file in content.compiled if file["flags"]), None)
    if flagged is None or form.gives_flags:
        return ""
    return (
        f"{flagged['path']} needs the flags {' '.join(flagged['flags'])}, and the form has no flags per file\n"
        "use cmake, zephyr or esp-idf, or target=host for plain C"
    )


def _reference(verdict: Mapping[str, Any]) -> str:
    return str(verdict.get("reference", ""))


def _with_unique_names(src: Path, model: Mapping[str, Any], target: Target) -> dict[str, bytes]:
    prefix = model["prefix"]
    files = {
        path.relative_to(src).as_posix(): path.read_bytes()
        for path in sorted(src.rglob("*"))
        if path.is_file() and path.name not in _SKIPPED
    }
    sources = renamed(files, defined(src, model, target), prefix)
    with temporary_folder("export") as folder:
        for name, content in sources.items():
            place = path_below(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        clashing = sorted(name for name in defined(folder, model, target) if not name.startswith(f"{prefix}_"))
    if clashing:
        raise StageError(
            f"{', '.join(clashing[:4])} would clash with another export: {SYMBOLS} does not rename them",
            hint="The C or assembly of a kernel composes the name at compile time. Write it out.",
        )
    return sources


def _ports(kind: str, model: Mapping[str, Any], steps: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return inputs or outputs, with the values of each step as lines of an initializer."""
    ports = []
    for number, port in enumerate(model[f"{kind}s"]):
        ports.append(
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
    return ports
