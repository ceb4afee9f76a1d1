"""Random networks of layers that can run by rows: branches, residual additions, strides, padding, pools, a head."""

from typing import Any

import numpy as np

from stages.ir.models.builder import ModelBuilder, Tensor

KERNELS = (1, 1, 2, 3, 3, 4, 5)
HEIGHTS = (1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 16)


def network(seed: int, dtype: str = "int8", blocks: int = 4, *, image: bool = False) -> bytes:
    """Return a TFLite model; the same seed gives the same model.

    image  it has one input and one output, which is an image
    """
    kind = _FloatNetwork if dtype == "float32" else _Network
    return kind(np.random.default_rng(seed), dtype).build(blocks, image)


class _Network:
    def __init__(self, rng: np.random.Generator, dtype: str) -> None:
        self.rng, self.dtype, self.b = rng, dtype, ModelBuilder()
        self.count = 0
        if dtype != "float32":
            bounds = np.iinfo(dtype)
            self.low, self.high = int(bounds.min), int(bounds.max)
        self.scale = 0.05 if dtype != "int16" else 0.0002
        self.channels = self.pick(((1, 3, 4, 8, 16), (16,), (8, 16), (16, 32)))  # 16 bytes: the alignment of kernels

    def build(self, blocks: int, image: bool) -> bytes:
        height, width = self.pick(HEIGHTS), self.pick((1, 2, 3, 5, 8))
        x = self.b.input("x", (1, height, width, self.pick(self.channels)), self.dtype, *self.quant())
        if self.rng.random() < 0.1 and not image:
            x = self.b.add(x, self.b.input("y", x.shape, self.dtype, *self.quant()), name=self.name("add"))
        outputs = []
        for _ in range(1 + int(self.rng.integers(blocks))):
            blocks = self.layer, self.layer, self.residual, self.residual, self.joined, self.element_wise, self.moved
            block = self.pick((*blocks, self.moved))
            x = block(x)
            if self.rng.random() < 0.05 and not image:
                outputs.append(self.pick((x, self.b.reshape(x, (1, int(np.prod(x.shape))), name=self.name("flat")))))
        head = x if image else self.head(x)
        self.b.output(*(y for y in outputs if y is not head and y is not x), head)
        return self.b.build()

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def quant(self) -> Any:
        middle = (self.low + self.high + 1) // 2
        zero_point = 0 if self.dtype == "int16" else middle + int(self.rng.integers(-60, 60))
        return float(np.float32(self.scale * self.rng.uniform(0.5, 2))), zero_point

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def window(self, x: Tensor, stride: int | None, same: bool) -> tuple[tuple[int, int], dict[str, Any]]:
        """Return the kernel, and stride, dilation and padding; `same` keeps the height at stride 1."""
        kernel = self.pick(KERNELS), self.pick((1, 1, 3, 3, 5))
        steps = (stride or self.pick((1, 1, 2, 2, 3)), self.pick((1, 1, 2)) if stride is None else stride)
        dilation = self.pick(((1, 1), (2, 1), (2, 2), (3, 1))) if steps == (1, 1) else (1, 1)
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        fits = all(span <= size for span, size in zip(spans, x.shape[1:3], strict=True))
        padding = "same" if same or not fits or self.rng.random() < 0.6 else "valid"
        return kernel, {"stride": steps, "dilation": dilation, "padding": padding}

    def weighted(self, x: Tensor, shape: tuple[int, ...], units: int) -> dict[str, Any]:
        """Return weights, bias, their scales, and an output scale that spreads the sums."""
        depth = int(np.prod(shape)) // units
        if self.dtype == "uint8":
            scale: Any = float(np.float32(self.rng.uniform(0.004, 0.02)))
            kind = {"weight_scale": scale, "weight_zero_point": int(self.rng.integers(100, 150))}
            array = self.rng.integers(0, 256, shape).astype(np.uint8)
        else:
            scale = [float(np.float32(self.rng.uniform(0.004, 0.02))) for _ in range(units)]
            kind = {"weight_scale": scale}
            array = self.rng.integers(-127, 128, shape).astype(np.int8)
        bias = self.rng.integers(-900, 900, units).astype(np.int64 if self.dtype == "int16" else np.int32)
        spread = 74 * 0.012 * x.scale[0] * depth**0.5 * (1 if self.dtype != "int16" else 1.5)
        out = (float(np.float32(spread * self.rng.uniform(0.6, 1.6))), self.quant()[1])
        return {"weights": array, "bias": bias, "out": out, **kind, "activation": self.pick(("none", "relu", "relu6"))}

    def convolution(
        self, x: Tensor, stride: int | None = None, same: bool = False, units: int = 0, pointwise: bool = False
    ) -> Tensor:
        kernel, steps = self.window(x, stride, same)
        if pointwise:
            kernel, steps["dilation"] = (1, 1), (1, 1)
        units = units or self.pick(self.channels)
        made = self.weighted(x, (units, *kernel, x.shape[3]), units)
        return self.b.conv2d(x, **made, **steps, name=self.name("conv"))

    def depthwise(self, x: Tensor, stride: int | None = None, same: bool = False, multiplier: int = 0) -> Tensor:
        kernel, steps = self.window(x, stride, same)
        units = x.shape[3] * (multiplier or (self.pick((1, 1, 1, 2)) if x.shape[3] < 9 else 1))
        made = self.weighted(x, (1, *kernel, units), units)
        return self.b.depthwise_conv2d(x, **made, **steps, name=self.name("depthwise"))

    def pool(self, x: Tensor, stride: int | None = None, same: bool = False) -> Tensor:
        kernel, steps = self.window(x, stride, same)
        del steps["dilation"]
        if any(k > size for k, size in zip(kernel, x.shape[1:3], strict=True)) and steps["padding"] == "valid":
            kernel = (1, 1)
        add = self.pick((self.b.avg_pool2d, self.b.max_pool2d))
        return add(x, kernel, **steps, name=self.name("pool"))

    def layer(self, x: Tensor) -> Tensor:
        return self.pick((self.convolution, self.convolution, self.depthwise, self.pool))(x)

    def element_wise(self, x: Tensor) -> Tensor:
        kind = self.pick(("relu", "relu6", "leaky_relu", "hard_swish", "quantize", "add_constant", "add_itself"))
        if kind == "add_itself":
            return self.b.add(x, x, out=(x.scale[0] * 2, x.zero_point[0]), name=self.name("add"))
        if kind == "add_constant":
            shape = self.pick((x.shape[3:], x.shape[2:], x.shape[1:], (1, 1, 1, x.shape[3]), (x.shape[1], 1, 1)))
            values = self.rng.integers(self.low, self.high, shape).astype(self.dtype)
            other = self.b.constant(self.name("known"), values, x.scale[0], x.zero_point[0])
            return self.b.add(x, other, out=(x.scale[0] * 1.5, x.zero_point[0]), name=self.name("add"))
        if kind == "quantize":
            return self.b.quantize(x, self.dtype, (x.scale[0] * 1.1, x.zero_point[0]), name=self.name("quantize"))
        if self.dtype == "int16":
            return self.b.relu(x, name=self.name("relu"))
        return getattr(self.b, kind)(x, out=(x.scale[0] * 0.8, x.zero_point[0]), name=self.name(kind))

    def moved(self, x: Tensor) -> Tensor:
        """Return the image with more or fewer rows, or its pixels in other places."""
        (_, height, width, channels), block = x.shape, self.pick((2, 2, 3))
        kind = self.pick(("nearest", "bilinear", "bilinear", "transposed", "transposed", "blocks", "pad", "slice"))
        if kind in ("nearest", "bilinear"):
            return self.resized(x, kind if self.dtype in ("int8", "uint8") else "nearest")
        if kind == "transposed" and height < 17:
            return self.transposed(x)
        if self.dtype == "int16" and kind == "blocks":  # LiteRT has none of 16 bits
            kind = "pad"
        if kind == "blocks" and channels % (block * block) == 0 and height < 17:
            table, name = "DepthToSpaceOptions", self.name("to_space")
            return self.b.emit("DEPTH_TO_SPACE", [x], None, None, name, table, {"blockSize": block})
        if kind == "blocks" and height % block == width % block == 0 and channels < 9:
            table, name = "SpaceToDepthOptions", self.name("to_depth")
            return self.b.emit("SPACE_TO_DEPTH", [x], None, None, name, table, {"blockSize": block})
        if kind == "slice" and height > 2:
            first, rows, column = int(self.rng.integers(height - 1)), int(self.rng.integers(1, height)), width // 3
            size = 1, min(rows, height - first), width - column, channels
            return self.b.slice(x, (0, first, column, 0), size, name=self.name("slice"))
        widths = self.rng.integers(0, 3, (4, 2)) * np.array([[0], [1], [1], [0]])
        return self.b.pad(x, widths.tolist(), name=self.name("pad"))

    def resized(self, x: Tensor, kind: str) -> Tensor:
        factors = (0.5, 0.7, 1.3, 2, 2, 2, 3)
        size = np.array([min(max(round(n * self.pick(factors)), 1), 30) for n in x.shape[1:3]], np.int32)
        corners, centers = self.pick(((False, False), (True, False), (False, True), (False, True)))
        op, table = ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")
        if kind == "bilinear":
            op, table = "RESIZE_BILINEAR", "ResizeBilinearOptions"
        inputs = [x, self.b.constant(self.name("size"), size)]
        options = {"alignCorners": corners, "halfPixelCenters": centers}
        return self.b.emit(op, inputs, None, None, self.name("resize"), table, options)

    def transposed(self, x: Tensor) -> Tensor:
        kernel, stride = (self.pick((1, 2, 3, 4)), self.pick((1, 2, 3))), (self.pick((1, 2, 2, 3)), self.pick((1, 2)))
        units, padding = self.pick(self.channels), self.pick(("same", "same", "valid"))
        made = self.weighted(x, (units, *kernel, x.shape[3]), units)
        sizes = zip(x.shape[1:3], stride, kernel, strict=True)
        span = [(n - 1) * s + (s if padding == "same" else max(k, s)) for n, s, k in sizes]
        return self.b.transpose_conv(
            x, **made, shape=(1, *span, units), stride=stride, padding=padding, name=self.name("transposed")
        )

    def branch(self, x: Tensor, stride: int, depth: int) -> Tensor:
        """Return a chain that keeps the height, or divides it by `stride`."""
        y = x
        for number in range(depth):
            kind = self.pick((self.convolution, self.depthwise, self.pool))
            y = kind(y, stride if number == 0 else 1, True)
            if self.rng.random() < 0.2:
                y = self.element_wise(y)
        return y

    def residual(self, x: Tensor) -> Tensor:
        stride = self.pick((1, 1, 1, 2, 3))
        y = self.branch(x, stride, 1 + int(self.rng.integers(3)))
        if stride == 1 and y.shape == x.shape:
            z = x
        elif stride == 1 and self.rng.random() < 0.5:
            y, z = self.convolution(y, 1, True, x.shape[3]), x
        else:
            z = self.convolution(x, stride, True, y.shape[3], pointwise=self.rng.random() < 0.5)
        if self.rng.random() < 0.5:
            y, z = z, y
        kind = self.b.add if self.dtype == "int16" else self.pick((self.b.add, self.b.add, self.b.sub, self.b.mul))
        size = 74 * y.scale[0] * z.scale[0] if kind == self.b.mul else 1.5 * max(y.scale[0], z.scale[0])
        y = kind(y, z, out=(float(np.float32(size)), self.quant()[1]), name=self.name("add"))
        return self.b.relu(y, name=self.name("relu")) if self.rng.random() < 0.3 else y

    def joined(self, x: Tensor) -> Tensor:
        stride = self.pick((1, 1, 2))
        parts = [self.branch(x, stride, int(self.rng.integers(1, 3))) for _ in range(int(self.rng.integers(1, 4)))]
        if stride == 1 and self.rng.random() < 0.4:
            parts.append(x)
        common = parts[0].scale[0], parts[0].zero_point[0]
        parts = [
            y
            if (y.scale[0], y.zero_point[0]) == common
            else self.b.quantize(y, self.dtype, common, name=self.name("quantize"))
            for y in parts
        ]
        return self.b.concatenation(parts, 3, name=self.name("concatenation")) if len(parts) > 1 else parts[0]

    def head(self, x: Tensor) -> Tensor:
        kind = self.pick(("", "average", "mean", "mean", "flat", "max"))
        if not kind:
            return x
        if kind == "average":
            x = self.b.avg_pool2d(x, x.shape[1:3], (1, 1), name=self.name("average"))
        elif kind == "max":
            x = self.b.max_pool2d(x, x.shape[1:3], (1, 1), name=self.name("max"))
        elif kind == "mean":
            out = self.pick((None, (x.scale[0] * 0.6, x.zero_point[0]))) if self.dtype != "int16" else None
            x = self.b.mean(x, (1, 2), keep_dims=self.pick((False, True)), out=out, name=self.name("mean"))
        if self.rng.random() < 0.3:
            return x
        if self.rng.random() < 0.5 or kind == "flat":
            x = self.b.reshape(x, (1, int(np.prod(x.shape))), name=self.name("flat"))
        depth = int(np.prod(x.shape))
        if len(x.shape) == 2 or x.shape[:3] == (1, 1, 1):
            made = self.weighted(x, (5, depth), 5)
            if self.dtype != "uint8":
                made["weight_scale"] = made["weight_scale"][0]
            x = self.b.fully_connected(x, **made, name=self.name("dense"))
            if x.scale[0] < 1:  # LiteRT's softmax of 16 bits takes no larger scale
                x = self.b.softmax(x, name=self.name("softmax"))
        return x


class _FloatNetwork(_Network):
    """The same without scales."""

    def quant(self) -> Any:
        return ()

    def weighted(self, x: Tensor, shape: tuple[int, ...], units: int) -> dict[str, Any]:
        depth = int(np.prod(shape)) // units
        arrays = {
            "weights": self.rng.normal(0, depth**-0.5, shape).astype(np.float32),
            "bias": self.rng.normal(0, 1, units).astype(np.float32),
        }
        arrays["weights"].reshape(-1)[0] = self.pick((0.0, -0.0, 1e-40))
        return {**arrays, "activation": self.pick(("none", "relu", "relu6"))}

    def element_wise(self, x: Tensor) -> Tensor:
        kind = self.pick(("relu", "relu6", "leaky_relu", "hard_swish", "logistic", "constant", "itself", "pad"))
        if kind == "itself":
            return self.b.add(x, x, name=self.name("add"))
        if kind == "constant":
            shape = self.pick((x.shape[3:], x.shape[2:], x.shape[1:], (1, 1, 1, x.shape[3]), (x.shape[1], 1, 1)))
            known = self.b.constant(self.name("known"), self.rng.normal(0, 1, shape).astype(np.float32))
            return self.b.mul(x, known, name=self.name("mul"))
        if kind == "pad":
            widths = self.rng.integers(0, 3, (4, 2)) * np.array([[0], [1], [1], [0]])
            return self.b.pad(x, widths.tolist(), name=self.name("pad"))
        return getattr(self.b, kind)(x, name=self.name(kind))

    def residual(self, x: Tensor) -> Tensor:
        y = self.convolution(self.branch(x, 1, 1 + int(self.rng.integers(2))), 1, True, x.shape[3])
        kind = self.pick((self.b.add, self.b.add, self.b.sub, self.b.mul))
        return kind(*self.pick(((x, y), (y, x))), name=self.name("add")) if y.shape == x.shape else y

    def branch(self, x: Tensor, stride: int, depth: int) -> Tensor:
        y = x
        for number in range(depth):
            y = self.pick((self.convolution, self.depthwise, self.pool))(y, stride if number == 0 else 1, True)
        return y

    def joined(self, x: Tensor) -> Tensor:
        stride = self.pick((1, 2))
        parts = [self.branch(x, stride, int(self.rng.integers(1, 3))) for _ in range(int(self.rng.integers(2, 4)))]
        return self.b.concatenation(parts, 3, name=self.name("concatenation"))

    def head(self, x: Tensor) -> Tensor:
        if self.rng.random() < 0.4:
            return x
        x = self.b.mean(x, (1, 2), keep_dims=False, name=self.name("mean"))
        return self.b.softmax(
            self.b.fully_connected(x, **self.weighted(x, (5, x.shape[1]), 5), name=self.name("dense"))
        )
