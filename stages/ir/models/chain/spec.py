"""The recipe's `model: {chain: [...]}`: front end, networks, smoothed scores as one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from stages.ir.models.chain.frontends.mel import LogMel, Mfcc
from stages.ir.models.chain.frontends.microfrontend import MicroFrontend
from stages.ir.models.spec import FileModel, PluginModel, UrlModel, ZooModel
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean
from stages.support.options.strict_model import StrictModel, mistake

PartName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,39}$")]
_MOST_PARTS = 100
TensorName = Annotated[str, Field(min_length=1, max_length=200)]


_Threshold = Annotated[float, Field(ge=-1e6, le=1e6)]


class Smooth(StrictModel):
    """Mean of each score over the last runs, and its decision.

    window     runs in the mean; before the first run, scores are 0
    threshold  a decision is true while its mean is above it, in the units of the score. A list has a threshold for each
               score, null for scores that are never detected
    index      the only element of the network's output that is a score; None: all
    """

    window: Annotated[int, Field(ge=1, le=1_000)] = 5
    threshold: _Threshold | Annotated[tuple[_Threshold | None, ...], Field(min_length=1, max_length=1_000)] = 0.9
    index: Annotated[int, Field(ge=0, le=1_000_000)] | None = None


class _Part(StrictModel):
    """Options of every part. `name` is the prefix of its tensors and layers."""

    name: PartName | None = None


_FRONTENDS = ("microfrontend", "log_mel", "mfcc")


def _check_kind(options: Any) -> Any:
    """Return the options. Raises PydanticCustomError for a missing or unknown `kind`."""
    if isinstance(options, Mapping) and options.get("kind") not in _FRONTENDS:
        kind, known = options.get("kind"), ", ".join(_FRONTENDS)
        if "kind" not in options:
            raise mistake(f"needs a kind: {known}")
        guess = did_you_mean(kind, _FRONTENDS) if isinstance(kind, str) else ""
        raise mistake(f"should be {known}; is {escape.name(str(kind))}{guess}", "kind")
    return options


class FrontendPart(_Part):
    """Part that computes features from samples."""

    frontend: Annotated[MicroFrontend | LogMel | Mfcc, Field(discriminator="kind"), BeforeValidator(_check_kind)]


class SmoothPart(_Part):
    """Part that averages scores and decides."""

    smooth: Smooth


class NetworkPart(_Part):
    """Options of a network in a chain.

    inputs   by name: outputs of the part before; other inputs are inputs of the chain. Default: all, in order
    convert  requantize inputs whose type or scale differs from the output before
    """

    inputs: dict[TensorName, TensorName] | None = None
    convert: bool = False


class FilePart(NetworkPart, FileModel):
    """A TFLite or ONNX file in a chain."""


class UrlPart(NetworkPart, UrlModel):
    """A downloaded file in a chain."""


class ZooPart(NetworkPart, ZooModel):
    """A network of the zoo in a chain."""


class PluginPart(NetworkPart, PluginModel):
    """A network of a plug-in in a chain."""


PART_SOURCES = ("frontend", "smooth")


class ChainModel(StrictModel):
    """Models that run one after the other: outputs of a part are inputs of the next."""

    chain: tuple[Any, ...]

    @field_validator("chain")
    @classmethod
    def _order(cls, parts: Sequence[Any]) -> Sequence[Any]:
        if not 1 <= len(parts) <= _MOST_PARTS:
            raise mistake(f"a chain has 1 to {_MOST_PARTS} parts, not {len(parts)}")
        for at, part in enumerate(parts):
            for key in ("inputs", "convert") if isinstance(part, NetworkPart) and not at else ():
                if key in part.model_fields_set:
                    raise mistake("connects a part to the one before it, but this is the first", at, key, key=True)
            if isinstance(part, FrontendPart) and at:
                raise mistake("a front end must be the first part", at, "frontend", key=True)
            if isinstance(part, SmoothPart) and not at:
                raise mistake("smooth reads the scores of a part before it", at, "smooth", key=True)
            if isinstance(part, SmoothPart) and isinstance(parts[at - 1], FrontendPart):
                message = "smooth reads the scores of a network, but the part before it is the front end; add a network"
                raise mistake(message, at, "smooth", key=True)
        return parts

    @model_validator(mode="after")
    def _check(self) -> ChainModel:
        stated = Counter(part.name for part in self.chain if part.name is not None)
        for name, count in stated.items():
            if count > 1:
                raise mistake(f"{count} parts have the name {escape.quoted(name)}", "chain")
        return self

    @property
    def frontend(self) -> Any:
        """Options of the front end; None without one."""
        first = self.chain[0]
        return first.frontend if isinstance(first, FrontendPart) else None

    @property
    def networks(self) -> dict[int, Any]:
        """The parts that are networks, by number."""
        return {at: part for at, part in enumerate(self.chain) if isinstance(part, NetworkPart)}
