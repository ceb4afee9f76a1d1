"""Changes of layout as copies: every element comes to its place, and nothing else is written."""

from stages.graph import Layout, Tensor
from stages.kernels.generic.copies import why_not_relayouts


def tensor(name: str, shape: tuple[int, ...], layout: str) -> Tensor:
    return Tensor(name=name, shape=shape, dtype="int16", layout=Layout(layout))


def test_what_no_strides_can_say() -> None:
    shape = (1, 4, 4, 12)
    x, y = tensor("x", shape, "NCHW4c"), tensor("y", shape, "NCHW6c")
    assert why_not_relayouts(x, y) == "blocks of NCHW4c and NCHW6c do not divide each other"
    narrow = tensor("z", shape, "NCHW:4")
    assert why_not_relayouts(x, narrow) == "elements of less than a byte are not moved"
