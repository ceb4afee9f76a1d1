"""Resize, Upsample, DepthToSpace and SpaceToDepth."""

import numpy as np

from stages.import_model.onnx.operators.evaluate import evaluated
from stages.import_model.onnx.operators.movement import Mover
from stages.import_model.onnx.translation import Node, Translation, check_rank
from stages.import_model.onnx.values import Dequantized, TensorView, image_order, permuted
from stages.ir.arrays import Array
from stages.ir.operators.operation import Refused, listed


def resize(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate Resize and Upsample over height and width, if TFLite reads the same positions.

    ONNX Runtime resizes images of row and column numbers, which gives its positions.
    """
    check_rank(x, (4,))
    mode, coordinates = (node.attributes.get(key, "") for key in ("mode", "coordinate_transformation_mode"))
    if mode not in ("", "nearest", "linear", "bilinear"):
        raise Refused(f"resizes in the mode {mode}; nearest and linear are supported")
    if coordinates.startswith("tf_crop"):
        raise Refused(f"has the coordinates {coordinates}, which are not supported")
    if node.attributes.get("antialias", 0):
        raise Refused("is antialiased, which is not supported")
    shape, source_places = _source_positions(t, node, x)
    if shape[:2] != x.shape[:2]:
        raise Refused(f"resizes {listed(x.shape)} to {listed(shape)}; only height and width may change")
    linear, name = mode in ("linear", "bilinear"), node.outputs[0]
    if linear and x.tensor.scale and not isinstance(t.value(node, 0), Dequantized):
        raise Refused("resizes integers in the mode linear; nearest is supported")
    integers = not linear or (bool(x.tensor.scale) and _keeps_scale(t, node, x))
    image = t.reordered(x if integers else t.computed(node, 0), image_order(4)).tensor
    for align, half in ((False, False), (True, False), (False, True)):
        if any(
            not np.allclose(
                coordinate_line,
                _tflite_positions(before, len(coordinate_line), linear=linear, align=align, half=half),
                rtol=1e-6,
                atol=1e-5,
            )
            for coordinate_line, before in zip(source_places, x.shape[2:], strict=True)
        ):
            continue
        if not linear:
            result = t.builder.resize_nearest_neighbor(
                image, shape[2:], align_corners=align, half_pixel_centers=half, name=name
            )
            return TensorView.of(result, image_order(4))
        sides = zip(x.shape[2:], shape[2:], strict=True)
        if image.scale and not all(_in_1024ths(before, after, align=align, half=half) for before, after in sides):
            image = t.reordered(t.computed(node, 0), image_order(4)).tensor
        fields = {"alignCorners": align, "halfPixelCenters": half}
        inputs = [image, t.builder.constant(f"{name}/size", np.array(shape[2:], np.int32))]
        stored_shape = permuted(shape, image_order(4))
        result = t.builder.emit("RESIZE_BILINEAR", inputs, stored_shape, None, name, "ResizeBilinearOptions", fields)
        if result.scale:
            t.rule(sums="resize")
        return TensorView.of(result, image_order(4))
    raise Refused(f"reads other positions than TFLite's resize, from {listed(x.shape)} to {listed(shape)}")


def _keeps_scale(t: Translation, node: Node, x: TensorView) -> bool:
    """Return whether the result is quantized with the scale of x."""
    out = t.quantized(node.outputs[0])
    return out is not None and out.quant == (x.tensor.scale[0], x.tensor.zero_point[0])


def _in_1024ths(before: int, after: int, *, align: bool, half: bool) -> bool:
    """Return whether TFLite's source positions, in multiples of 1/1024, are exact."""
    span, steps = (before - 1, after - 1) if align and after > 1 else (before, after)
    return (1024 * span) % steps == 0 and not (half and 1024 * span // steps % 2)


def _source_positions(t: Translation, node: Node, x: TensorView) -> tuple[tuple[int, ...], list[Array]]:
    """Return the result's shape, and the source position of each of its rows and columns."""
    lines = [np.arange(size, dtype=np.float32) for size in x.shape[2:]]
    results = [
        evaluated(t, node, np.ascontiguousarray(np.broadcast_to(line, x.shape)))
        for line in (lines[0][:, None], lines[1])
    ]
    if not results[0].size:
        raise Refused(f"resizes {listed(x.shape)} to {listed(results[0].shape)}")
    return results[0].shape, [results[0][0, 0, :, 0], results[1][0, 0, 0, :]]


def _tflite_positions(before: int, after: int, *, linear: bool, align: bool, half: bool) -> Array:
    """Return TFLite's source positions."""
    at = np.arange(after, dtype=np.float32) + np.float32(0.5 if half else 0.0)
    scale = np.float32((before - 1) / (after - 1) if align and after > 1 else before / after)
    if linear:
        along: Array = at * scale - np.float32(0.5 if half else 0.0)
    else:
        along = np.floor(at * scale + np.float32(0.5 if align else 0.0))
    return np.clip(along, 0, before - 1)


def depth_to_space(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate DepthToSpace, DCR or CRD."""
    if node.attributes.get("mode", "DCR") == "CRD":
        return _crd_blocks(t, node, x)
    return _blocks(t, node, x, "DEPTH_TO_SPACE")


def _crd_blocks(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Append DepthToSpace in CRD order, as PyTorch's PixelShuffle, by transposing axes."""
    check_rank(x, (4,))
    image, block = t.reordered(x, image_order(4)).tensor, int(node.attributes["blocksize"])
    batch, height, width, channels = image.shape
    if channels % block**2:
        raise Refused(f"has the blocksize {block}; {channels} channels are not a multiple of {block**2}")
    name, result_channels = node.outputs[0], channels // block**2
    result = t.builder.reshape(image, (batch * height, width, result_channels, block, block), name=f"{name}/blocks")
    result = t.builder.transpose(result, (0, 3, 1, 4, 2), name=f"{name}/rows")
    result = t.builder.reshape(result, (batch, height * block, width * block, result_channels), name=name)
    return TensorView.of(result, image_order(4))


def space_to_depth(t: Translation, node: Node, x: TensorView) -> TensorView:
    """Translate SpaceToDepth."""
    return _blocks(t, node, x, "SPACE_TO_DEPTH")


def _blocks(t: Translation, node: Node, x: TensorView, op: str) -> TensorView:
    check_rank(x, (4,))
    image, block = t.reordered(x, image_order(4)).tensor, int(node.attributes["blocksize"])
    batch, height, width, channels = image.shape
    if op == "SPACE_TO_DEPTH" and (height % block or width % block):
        raise Refused(f"has the blocksize {block}, which does not divide height and width of {listed(x.shape)}")
    if op == "DEPTH_TO_SPACE" and channels % block**2:
        raise Refused(f"has the blocksize {block}; {channels} channels are not a multiple of {block**2}")
    shape = (batch, height * block, width * block, channels // block**2)
    if op == "SPACE_TO_DEPTH":
        shape = (batch, height // block, width // block, channels * block**2)
    table = "DepthToSpaceOptions" if op == "DEPTH_TO_SPACE" else "SpaceToDepthOptions"
    return TensorView.of(
        t.builder.emit(op, [image], shape, None, node.outputs[0], table, {"blockSize": block}), image_order(4)
    )


MOVES: dict[str, Mover] = {
    "DepthToSpace": depth_to_space,
    "Resize": resize,
    "SpaceToDepth": space_to_depth,
    "Upsample": resize,
}
