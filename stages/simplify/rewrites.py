"""What was taken out of a graph, in words for people."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

RuleName = Literal["channels", "identity", "clamp", "tables", "movement", "duplicate"]


class Rewrite(BaseModel):
    """By which `rule` the graph got simpler, which `layers` (their outputs) it was about, and `what` in words."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    rule: RuleName
    layers: tuple[str, ...]
    what: str
