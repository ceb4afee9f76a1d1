"""The graphs of a TFLite file: signatures, and decompositions of composites.

A file with several graphs has control flow only if an operator of the selected graph branches or loops. Field numbers
are those of `schema.fbs`; offsets are checked as in `stages.ir.models.tflite_reader`.
"""

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
    """The number of graphs and the signatures, in the file's order."""

    count: int
    signatures: tuple[Signature, ...]


@dataclass(frozen=True)
class Composite:
    """An operator composed of others: its name, and the graph of its decomposition."""

    name: str
    subgraph: int


class UnknownSignature(StageError):
    """The recipe requests a signature that the file does not have."""


def graphs(data: bytes, name: str) -> Graphs:
    """Return the graphs of a TFLite file.

    Raises StageError, naming the file as `name`, for an invalid file.
    """
    with opened(data, name) as model:
        count, signatures = len(subgraphs(model)), []
        for table in model.tables(7, "signature"):
            signature = Signature(table.string(2), table.scalar(4, "<I"))
            if signature.subgraph >= count:
                raise Corrupt(
                    f"signature {escape.name(signature.name)} refers to subgraph {signature.subgraph} of {count}"
                )
            signatures.append(signature)
        return Graphs(count, tuple(signatures))


def composites(data: bytes, name: str, subgraph: int) -> dict[int, Composite]:
    """Return the composites of a graph that `read` accepted, by the number of their operator.

    Raises StageError as `graphs`.
    """
    with opened(data, name) as model:
        all_graphs = subgraphs(model)
        codes = model.tables(1, "operator code")
        by_operator = {}
        for index, operator in enumerate(all_graphs[subgraph].tables(3, "operator")):
            code = codes[operator.scalar(0, "<I")]
            if max(code.scalar(0, "<b"), code.scalar(3, "<i")) != _composite_code():
                continue
            options = operator.table(12, f"options of operator {index}")
            number = options.scalar(1, "<i") if options is not None else -1
            if options is None or not 0 <= number < len(all_graphs):
                raise Corrupt(f"operator {index} ({COMPOSITE}) refers to subgraph {number} of {len(all_graphs)}")
            by_operator[index] = Composite(escape.name(options.string(0)), number)
        return by_operator


def choose(model: Graphs, wanted: str | None, name: str) -> Signature | None:
    """Return the signature `wanted`, by default the first; None for a file without signatures.

    Raises UnknownSignature.
    """
    if wanted is None:
        return model.signatures[0] if model.signatures else None
    for signature in model.signatures:
        if signature.name == wanted:
            return signature
    names = [escape.name(signature.name) for signature in model.signatures]
    if not names:
        message = f"{name} has no signatures, so none is called {escape.quoted(wanted)}"
        raise UnknownSignature(message, hint="Leave `signature` out.", at=("model", "signature"))
    message = f"{name} has no signature {escape.quoted(wanted)}{did_you_mean(wanted, names)}"
    raise UnknownSignature(message, hint=f"Its signatures: {several(names, 10)}", at=("model", "signature"))


def _composite_code() -> int:
    from ai_edge_litert.schema_py_generated import BuiltinOperator

    return int(BuiltinOperator.STABLEHLO_COMPOSITE)
