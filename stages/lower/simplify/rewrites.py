"""What was taken out of a graph, in words for people."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Rewrite(BaseModel):
    """By which `rule` the graph got simpler, which `layers` (their outputs) it was about, and `what` in words."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    rule: str
    layers: tuple[str, ...]
    what: str
