"""Which graphs a TFLite file has and what for: signatures to choose from, decompositions of composites.

A file with several graphs has control flow only where an operator of the graph that runs branches or loops. Field
numbers are those of `schema.fbs`; offsets are checked as in `stages.ir.models.tflite_reader`.
"""

from __future__ import annotations

from dataclasses import dataclass

from stages.ir.models.flatbuffer import Corrupt
from stages.ir.models.tflite_reader import opened, subgraphs
from stages.support.messages import escape
from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import did_you_mean, several

COMPOSITE = "STABLEHLO_COMPOSITE"


@dataclass(frozen=True)
class Signature:
    """An entry point that the exporter named, and its graph."""

    name: str
    subgraph: int


@dataclass(frozen=True)
class Graphs:
    """How many graphs the file has, and its signatures in the file's order."""

    count: int
    signatures: tuple[Signature, ...]


@dataclass(frozen=True)
class Composite:
    """An operator made of others: what it is called, and the graph of those that it stands for."""

    name: str
    subgraph: int


class UnknownSignature(StageError):
    """The recipe asks for a signature that the file does not have."""


def graphs(data: bytes, name: str) -> Graphs:
    """The graphs of a TFLite file. Raises StageError, naming the file as `name`, when it is not sound."""
    with opened(data, name) as model:
        count, found = len(subgraphs(model)), []
        for table in model.tables(7, "signature"):
            signature = Signature(table.string(2), table.scalar(4, "<I"))
            if signature.subgraph >= count:
                raise Corrupt(
                    f"signature {escape.name(signature.name)} refers to subgraph {signature.subgraph} of {count}"
                )
            found.append(signature)
        return Graphs(count, tuple(found))


def composites(data: bytes, name: str, subgraph: int) -> dict[int, Composite]:
    """The composites of a graph that `read` found sound, by the number of their operator. StageError as `graphs`."""
    with opened(data, name) as model:
        known = subgraphs(model)
        codes = model.tables(1, "operator code")
        found = {}
        for index, operator in enumerate(known[subgraph].tables(3, "operator")):
            code = codes[operator.scalar(0, "<I")]
            if max(code.scalar(0, "<b"), code.scalar(3, "<i")) != _composite_code():
                continue
            options = operator.table(12, f"options of operator {index}")
            number = options.scalar(1, "<i") if options is not None else -1
            if options is None or not 0 <= number < len(known):
                raise Corrupt(f"operator {index} ({COMPOSITE}) refers to subgraph {number} of {len(known)}")
            found[index] = Composite(escape.name(options.string(0)), number)
        return found


def choose(found: Graphs, wanted: str | None, name: str) -> Signature | None:
    """The signature called `wanted`, by default the first; None when the file has none. Raises UnknownSignature."""
    if wanted is None:
        return found.signatures[0] if found.signatures else None
    for signature in found.signatures:
        if signature.name == wanted:
            return signature
    names = [escape.name(signature.name) for signature in found.signatures]
    if not names:
        message = f"{name} has no signatures, so none is called {escape.quoted(wanted)}"
        raise UnknownSignature(message, hint="Leave `signature` out.", at=("model", "signature"))
    message = f"{name} has no signature {escape.quoted(wanted)}{did_you_mean(wanted, names)}"
    raise UnknownSignature(message, hint=f"Its signatures: {several(names, 10)}", at=("model", "signature"))


def _composite_code() -> int:
    from ai_edge_litert.schema_py_generated import BuiltinOperator

    return int(BuiltinOperator.STABLEHLO_COMPOSITE)
