"""What makes images of another size: Resize, and channels that become pixels or the other way."""

from __future__ import annotations

import numpy as np

from stages.import_model.onnx.operators.evaluated import evaluated
from stages.import_model.onnx.operators.movement import Mover
from stages.import_model.onnx.translation import Node, Translation, check_rank
from stages.import_model.onnx.values import Array, Held, Real, image_order, permuted
from stages.ir.operators.operation import Refused, listed


def resize(t: Translation, node: Node, x: Held) -> Held:
    """Resize and Upsample over height and width, where TFLite takes the same places.

    Where each result comes from is what ONNX Runtime makes of an image of its own coordinates.
    """
    check_rank(x, (4,))
    mode, how = (node.attributes.get(key, "") for key in ("mode", "coordinate_transformation_mode"))
    if mode not in ("", "nearest", "linear", "bilinear"):
        raise Refused(f"resizes in the mode {mode}; nearest and linear are supported")
    if how.startswith("tf_crop"):
        raise Refused(f"has the coordinates {how}")
    if node.attributes.get("antialias", 0):
        raise Refused("is antialiased")
    shape, wanted = _sources(t, node, x)
    if shape[:2] != x.shape[:2]:
        raise Refused(f"resizes {listed(x.shape)} to {listed(shape)}: height and width are supported")
    linear, name = mode in ("linear", "bilinear"), node.outputs[0]
    if linear and x.tensor.scale and not isinstance(t.value(node, 0), Real):
        raise Refused("resizes integers in the mode linear; nearest is supported")
    integers = not linear or (bool(x.tensor.scale) and _stays(t, node, x))
    image = t.ordered(x if integers else t.held(node, 0), image_order(4)).tensor
    for align, half in ((False, False), (True, False), (False, True)):
        if any(
            not np.allclose(
                line, _places(before, len(line), linear=linear, align=align, half=half), rtol=1e-6, atol=1e-5
            )
            for line, before in zip(wanted, x.shape[2:], strict=True)
        ):
            continue
        if not linear:
            made = t.builder.resize_nearest_neighbor(
                image, shape[2:], align_corners=align, half_pixel_centers=half, name=name
            )
            return Held.of(made, image_order(4))
        sides = zip(x.shape[2:], shape[2:], strict=True)
        if image.scale and not all(_in_1024ths(before, after, align=align, half=half) for before, after in sides):
            image = t.ordered(t.held(node, 0), image_order(4)).tensor
        fields = {"alignCorners": align, "halfPixelCenters": half}
        inputs = [image, t.builder.constant(f"{name}/size", np.array(shape[2:], np.int32))]
        laid = permuted(shape, image_order(4))
        made = t.builder.emit("RESIZE_BILINEAR", inputs, laid, None, name, "ResizeBilinearOptions", fields)
        if made.scale:
            t.rule(sums="resize")
        return Held.of(made, image_order(4))
    raise Refused(f"takes other places than TFLite's resize does, from {listed(x.shape)} to {listed(shape)}")


def _stays(t: Translation, node: Node, x: Held) -> bool:
    """Whether the result becomes integers on the scale of x."""
    out = t.quantized(node.outputs[0])
    return out is not None and out.quant == (x.tensor.scale[0], x.tensor.zero_point[0])


def _in_1024ths(before: int, after: int, *, align: bool, half: bool) -> bool:
    """Whether TFLite's places between integers, which are multiples of 1/1024, are the real ones."""
    span, steps = (before - 1, after - 1) if align and after > 1 else (before, after)
    return (1024 * span) % steps == 0 and not (half and 1024 * span // steps % 2)


def _sources(t: Translation, node: Node, x: Held) -> tuple[tuple[int, ...], list[Array]]:
    """The shape of the result, and for each of its rows and columns the place in x that it comes from."""
    lines = [np.arange(size, dtype=np.float32) for size in x.shape[2:]]
    found = [
        evaluated(t, node, np.ascontiguousarray(np.broadcast_to(line, x.shape)))
        for line in (lines[0][:, None], lines[1])
    ]
    if not found[0].size:
        raise Refused(f"resizes {listed(x.shape)} to {listed(found[0].shape)}")
    return found[0].shape, [found[0][0, 0, :, 0], found[1][0, 0, 0, :]]


def _places(before: int, after: int, *, linear: bool, align: bool, half: bool) -> Array:
    """As TFLite has them."""
    at = np.arange(after, dtype=np.float32) + np.float32(0.5 if half else 0.0)
    scale = np.float32((before - 1) / (after - 1) if align and after > 1 else before / after)
    if linear:
        along: Array = at * scale - np.float32(0.5 if half else 0.0)
    else:
        along = np.floor(at * scale + np.float32(0.5 if align else 0.0))
    return np.clip(along, 0, before - 1)


def depth_to_space(t: Translation, node: Node, x: Held) -> Held:
    if node.attributes.get("mode", "DCR") == "CRD":
        return _by_channels(t, node, x)
    return _blocks(t, node, x, "DEPTH_TO_SPACE")


def _by_channels(t: Translation, node: Node, x: Held) -> Held:
    """Blocks whose pixels are the inner axis of the channels, as of PyTorch's PixelShuffle: moved axes."""
    check_rank(x, (4,))
    image, block = t.ordered(x, image_order(4)).tensor, int(node.attributes["blocksize"])
    batch, height, width, channels = image.shape
    if channels % block**2:
        raise Refused(f"makes blocks of {block} of {channels} channels")
    name, left = node.outputs[0], channels // block**2
    made = t.builder.reshape(image, (batch * height, width, left, block, block), name=f"{name}/blocks")
    made = t.builder.transpose(made, (0, 3, 1, 4, 2), name=f"{name}/rows")
    made = t.builder.reshape(made, (batch, height * block, width * block, left), name=name)
    return Held.of(made, image_order(4))


def space_to_depth(t: Translation, node: Node, x: Held) -> Held:
    return _blocks(t, node, x, "SPACE_TO_DEPTH")


def _blocks(t: Translation, node: Node, x: Held, op: str) -> Held:
    check_rank(x, (4,))
    image, block = t.ordered(x, image_order(4)).tensor, int(node.attributes["blocksize"])
    batch, height, width, channels = image.shape
    if op == "SPACE_TO_DEPTH" and (height % block or width % block):
        raise Refused(f"makes blocks of {block} of {listed(x.shape)}")
    if op == "DEPTH_TO_SPACE" and channels % block**2:
        raise Refused(f"makes blocks of {block} of {channels} channels")
    shape = (batch, height * block, width * block, channels // block**2)
    if op == "SPACE_TO_DEPTH":
        shape = (batch, height // block, width // block, channels * block**2)
    table = "DepthToSpaceOptions" if op == "DEPTH_TO_SPACE" else "SpaceToDepthOptions"
    return Held.of(
        t.builder.emit(op, [image], shape, None, node.outputs[0], table, {"blockSize": block}), image_order(4)
    )


MOVES: dict[str, Mover] = {
    "DepthToSpace": depth_to_space,
    "Resize": resize,
    "SpaceToDepth": space_to_depth,
    "Upsample": resize,
}
