"""Names of the networks in the zoo; recipes are checked without building one."""

from collections.abc import Sequence

from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean

SIZES = (96, 128, 160, 192, 224)
V1_WIDTHS = (0.25, 0.5, 0.75, 1.0)
V2_WIDTHS = (0.35, 0.5, 0.75, 1.0, 1.3, 1.4)

_SINGLE = (
    "autoencoder", "ds_cnn", "ds_cnn_1d", "inception_v3_299", "inception_v4_299", "mobilenet_v1_0.25_96_vww",
    "resnet_8", "resnet_8_large",
)  # fmt: skip
_FAMILIES = ("mobilenet_v1_<width>_<size>", "mobilenet_v2_<width>_<size>")
NAMES = frozenset(
    {
        *_SINGLE,
        *(f"mobilenet_v1_{width}_{size}" for width in V1_WIDTHS for size in SIZES),
        *(f"mobilenet_v2_{width}_{size}" for width in V2_WIDTHS for size in SIZES),
    }
)


def check(name: str, plugins: Sequence[str] = ()) -> str:
    """Return the name. Raises ValueError, with the nearest name, for an unknown network.

    plugins  names of plug-in models
    """
    if name in NAMES:
        return name
    guess = did_you_mean(name, sorted({*NAMES, *plugins})) or "."
    known = ", ".join(sorted((*_SINGLE, *_FAMILIES, *plugins)))
    raise ValueError(f"unknown zoo model {escape.quoted(name)}{guess} Known: {known}")
