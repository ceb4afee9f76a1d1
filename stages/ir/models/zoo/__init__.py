"""The zoo: well-known topologies with seeded weights, as TFLite files.

Layers and operators are those that TensorFlow's converter gives for the published networks; a test compares them with
real files. The weights are random: the networks classify nothing, but cost as much as the real ones.
"""

from collections.abc import Callable
from functools import partial

from stages.ir.models.zoo.names import SIZES, V1_WIDTHS, V2_WIDTHS, check
from stages.support.messages.stage_error import StageError

Topology = Callable[[str, int, int], bytes]


def topologies() -> dict[str, Topology]:
    """Return the builder of each network by name. A builder takes dtype, seed and weight bits."""
    # Imported here: names are needed without them.
    from stages.ir.models.zoo import inception, mobilenet, tiny

    table: dict[str, Topology] = {
        "ds_cnn": tiny.ds_cnn,
        "ds_cnn_1d": tiny.ds_cnn_1d,
        "mobilenet_v1_0.25_96_vww": mobilenet.vww,
        "resnet_8": tiny.resnet_8,
        "resnet_8_large": partial(tiny.resnet_8, width=40),
        "autoencoder": tiny.autoencoder,
        "inception_v3_299": inception.inception_v3,
        "inception_v4_299": inception.inception_v4,
    }
    for size in SIZES:
        for width in V1_WIDTHS:
            table[f"mobilenet_v1_{width}_{size}"] = partial(mobilenet.mobilenet_v1, width, size)
        for width in V2_WIDTHS:
            table[f"mobilenet_v2_{width}_{size}"] = partial(mobilenet.mobilenet_v2, width, size)
    return table


def build(name: str, dtype: str = "int8", seed: int = 0, bits: int = 8) -> bytes:
    """Return the TFLite file of a zoo network.

    Raises StageError, with the nearest name, for an unknown name. Weights of fewer `bits` are int8 in the file, too.
    """
    try:
        check(name)
    except ValueError as error:
        raise StageError(str(error), at=("model", "zoo")) from None
    return topologies()[name](dtype, seed, bits)
