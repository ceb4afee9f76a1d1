"""Shape rule of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from stages.ir.model_info import TensorInfo
from stages.ir.naming import named
from stages.ir.operators.operation import Operation, Refused, Shape, Table, listed

_LARGEST_IMAGE = 2**16  # rows or columns: each has an entry in a table
RESIZE_BILINEAR_OPTIONS = Table("ResizeBilinearOptions", ":unused :unused align_corners:bool half_pixel_centers:bool")
RESIZE_NEAREST_NEIGHBOR_OPTIONS = Table("ResizeNearestNeighborOptions", "align_corners:bool half_pixel_centers:bool")
_OPTIONS = {"RESIZE_BILINEAR": RESIZE_BILINEAR_OPTIONS, "RESIZE_NEAREST_NEIGHBOR": RESIZE_NEAREST_NEIGHBOR_OPTIONS}
RESIZED_SIZES = f"4 axes, up to {_LARGEST_IMAGE:,} rows and columns; align_corners or half_pixel_centers, not both"


def resized(operation: Operation) -> list[Shape]:
    """Shape rule of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""
    source = operation.input(0)
    (batch, _, _, channels), (height, width) = image_shape(source), operation.integers(1, "the size", 2)
    if not 1 <= min(height, width) <= max(height, width) <= _LARGEST_IMAGE:
        raise Refused(f"resizes {named(source)} to {height}x{width}; sizes are from 1 to {_LARGEST_IMAGE}")
    options = operation.options(_OPTIONS[operation.op])
    if options["align_corners"] and options["half_pixel_centers"]:
        raise Refused("has both align_corners and half_pixel_centers; only one may be set")
    return [(batch, height, width, channels)]


def image_shape(tensor: TensorInfo) -> Shape:
    """Shape of an image of 4 axes. Raises Refused for others."""
    if len(tensor.shape) != 4:
        raise Refused(f"has the input {named(tensor)} {listed(tensor.shape)}; it must have 4 axes")
    return tensor.shape
