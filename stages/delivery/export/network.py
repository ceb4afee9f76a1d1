"""One network of an export: description, test, and variables of its templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.delivery.export.sample import Sample, rows

_C_TYPES = {"float32": "float", "bool": "bool"}


@dataclass(frozen=True)
class Network:
    """A network of an export.

    name      prefix of its C names (emit's prefix)
    title     name of the recipe
    model     content of model.json
    sample    test input and expected output
    verified  reference of the verification; '' if the recipe has no stage verify
    caller    whether its functions init and attach take the memories
    """

    name: str
    title: str
    model: Mapping[str, Any]
    sample: Sample
    verified: str
    caller: bool

    @property
    def is_stateful(self) -> bool:
        """Whether the network has state."""
        return "state" in self.model

    @property
    def arenas(self) -> list[dict[str, Any]]:
        """The arenas of model.json, in the order of init's parameters."""
        return [block for block in self.model["blocks"] if block["part"] == "arena"]

    @property
    def blob(self) -> str:
        """The arguments of init for the first weights, if the caller passes weights; else ''."""
        return f"{self.name}_weights, {self.name.upper()}_WEIGHTS_BYTES" if "fingerprint" in self.model else ""

    def facts(self) -> dict[str, Any]:
        """Return the variables of the templates about this network."""
        model, macro = self.model, self.name.upper()
        symbols = [block["symbol"] for block in self.arenas]
        symbols += [model["state"]["symbol"]] if self.is_stateful else []
        tensors = (*model["traces"], *model["inputs"], *model["outputs"])
        inputs = _ports("input", model, self.sample.inputs)
        outputs = _ports("output", model, self.sample.outputs)
        return {
            "name": self.name,
            "macro": macro,
            "title": self.title,
            "network": model["name"],
            "ports": [*inputs, *outputs],
            "inputs": inputs,
            "by_rows": "input_rows" in model,
            "emits": "output_rows" in model,
            "outputs": outputs,
            "floats": any(tensor["dtype"] == "float32" for tensor in tensors),
            "sample": self.sample.name,
            "steps": self.sample.steps,
            "stateful": self.is_stateful,
            "sample_rate": model.get("sample_rate"),
            "caller": self.caller,
            "blob": self.blob,
            "handed": [{"symbol": symbol, "macro": symbol.upper()} for symbol in symbols] if self.caller else [],
            "arena_bytes": model["arena_bytes"],
            "state_bytes": model["state"]["bytes"] if self.is_stateful else 0,
            "weights_bytes": model["weights_bytes"],
            "verified": self.verified,
        }


def _ports(kind: str, model: Mapping[str, Any], steps: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return inputs or outputs, with the values of each step as lines of an initializer."""
    ports = []
    for number, port in enumerate(model[f"{kind}s"]):
        ports.append(
            {
                "kind": kind,
                "number": number,
                "name": port["name"],
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
