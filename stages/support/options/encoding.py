"""The option `encoding` of sample files: how the file stores numbers."""

from typing import Annotated, Literal

from pydantic import Field

from stages.support.options.strict_model import StrictModel


class Encoding(StrictModel):
    """Encoding of numbers in a file: real = scale * (stored - zero_point)."""

    dtype: Literal["int8", "uint8", "int16", "float32"]
    scale: Annotated[float, Field(gt=0, lt=2.0**128)] = 1.0
    zero_point: int = 0
