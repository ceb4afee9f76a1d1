"""Descriptions of simplifications, for reports."""

from pydantic import BaseModel, ConfigDict


class Rewrite(BaseModel):
    """A simplification: `rule`, the changed `layers` (by output), and `what` it did."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    rule: str
    layers: tuple[str, ...]
    what: str
