"""The digits network in NumPy: forward, backward, Adam. Images are [N, 8, 8, 1], float32, 0 to 1.

    conv 3x3 16 -> depthwise 3x3 -> conv 1x1 32 -> max pool -> conv 3x3 32 -> max pool -> dense 10

Every convolution is SAME with stride 1 and is followed by ReLU.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Parameters = dict[str, Array]

# name -> weights' shape, as TFLite stores them: OHWI, 1HWC for depthwise, [units, depth] for dense
SHAPES = {
    "conv": (16, 3, 3, 1),
    "depthwise": (1, 3, 3, 16),
    "pointwise": (32, 1, 1, 16),
    "conv_2": (32, 3, 3, 32),
    "dense": (10, 128),
}


def initial(random: np.random.RandomState) -> Parameters:
    """He-initialized weights and zero biases, by "<layer>/weights" and "<layer>/bias"."""
    parameters: Parameters = {}
    for name, shape in SHAPES.items():
        fan_in = int(np.prod(shape[1:3])) if name == "depthwise" else int(np.prod(shape[1:]))
        parameters[f"{name}/weights"] = (random.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)
        channels = shape[3] if name == "depthwise" else shape[0]
        parameters[f"{name}/bias"] = np.zeros(channels, dtype=np.float32)
    return parameters


def forward(parameters: Parameters, images: Array) -> dict[str, Array]:
    """All activations by name; "logits" is [N, 10]."""
    values = {"images": images}
    values["conv"] = _relu(_conv(images, parameters, "conv"))
    values["depthwise"] = _relu(_depthwise(values["conv"], parameters))
    values["pointwise"] = _relu(_conv(values["depthwise"], parameters, "pointwise"))
    values["pool"] = _max_pool(values["pointwise"])
    values["conv_2"] = _relu(_conv(values["pool"], parameters, "conv_2"))
    values["pool_2"] = _max_pool(values["conv_2"])
    flat = values["pool_2"].reshape(len(images), -1)
    values["logits"] = flat @ parameters["dense/weights"].T + parameters["dense/bias"]
    return values


def gradients(parameters: Parameters, images: Array, labels: npt.NDArray[np.int64]) -> tuple[float, Parameters]:
    """Mean cross-entropy of a batch, and its gradient for each parameter."""
    values = forward(parameters, images)
    shifted = values["logits"] - values["logits"].max(axis=1, keepdims=True)
    probabilities = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(probabilities[rows, labels] + 1e-9).mean())

    result: Parameters = {}
    back = probabilities.copy()
    back[rows, labels] -= 1
    back /= len(labels)
    flat = values["pool_2"].reshape(len(images), -1)
    result["dense/weights"], result["dense/bias"] = back.T @ flat, back.sum(axis=0)
    back = (back @ parameters["dense/weights"]).reshape(values["pool_2"].shape)
    back = _max_pool_back(back, values["conv_2"], values["pool_2"]) * (values["conv_2"] > 0)
    back = _conv_back(back, values["pool"], parameters, result, "conv_2")
    back = _max_pool_back(back, values["pointwise"], values["pool"]) * (values["pointwise"] > 0)
    back = _conv_back(back, values["depthwise"], parameters, result, "pointwise") * (values["depthwise"] > 0)
    back = _depthwise_back(back, values["conv"], parameters, result) * (values["conv"] > 0)
    _conv_back(back, values["images"], parameters, result, "conv")
    return loss, result


class Adam:
    """Kingma and Ba, arXiv:1412.6980, algorithm 1, with decoupled weight decay."""

    def __init__(self, parameters: Parameters, decay: float) -> None:
        self.first = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.second = {name: np.zeros_like(value) for name, value in parameters.items()}
        self.decay = decay
        self.steps = 0

    def step(self, parameters: Parameters, gradient: Parameters, rate: float) -> None:
        """Updates `parameters` in place."""
        self.steps += 1
        for name, slope in gradient.items():
            self.first[name] = 0.9 * self.first[name] + 0.1 * slope
            self.second[name] = 0.999 * self.second[name] + 0.001 * slope**2
            mean = self.first[name] / (1 - 0.9**self.steps)
            deviation = np.sqrt(self.second[name] / (1 - 0.999**self.steps)) + 1e-8
            parameters[name] -= (rate * (mean / deviation + self.decay * parameters[name])).astype(np.float32)


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _taps(height: int, width: int) -> Iterator[tuple[int, int]]:
    return ((i, j) for i in range(height) for j in range(width))


def _padded(x: Array, kernel: int) -> Array:
    edge = kernel // 2
    return np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))


def _conv(x: Array, parameters: Parameters, name: str) -> Array:
    weights = parameters[f"{name}/weights"]
    padded = _padded(x, weights.shape[1])
    total = sum(
        padded[:, i : i + x.shape[1], j : j + x.shape[2]] @ weights[:, i, j].T for i, j in _taps(*weights.shape[1:3])
    )
    return np.asarray(total + parameters[f"{name}/bias"], dtype=np.float32)


def _conv_back(back: Array, x: Array, parameters: Parameters, result: Parameters, name: str) -> Array:
    """Stores the gradients of one convolution in `result` and returns that of its input."""
    weights = parameters[f"{name}/weights"]
    padded = _padded(x, weights.shape[1])
    slope, inner = np.zeros_like(weights), np.zeros_like(padded)
    rows = back.reshape(-1, back.shape[3])
    for i, j in _taps(*weights.shape[1:3]):
        window = (slice(None), slice(i, i + x.shape[1]), slice(j, j + x.shape[2]))
        slope[:, i, j] = rows.T @ padded[window].reshape(-1, x.shape[3])
        inner[window] += back @ weights[:, i, j]
    result[f"{name}/weights"], result[f"{name}/bias"] = slope, rows.sum(axis=0)
    return _cropped(inner, weights.shape[1])


def _depthwise(x: Array, parameters: Parameters) -> Array:
    weights = parameters["depthwise/weights"][0]
    padded = _padded(x, weights.shape[0])
    total = sum(padded[:, i : i + x.shape[1], j : j + x.shape[2]] * weights[i, j] for i, j in _taps(*weights.shape[:2]))
    return np.asarray(total + parameters["depthwise/bias"], dtype=np.float32)


def _depthwise_back(back: Array, x: Array, parameters: Parameters, result: Parameters) -> Array:
    weights = parameters["depthwise/weights"][0]
    padded = _padded(x, weights.shape[0])
    slope, inner = np.zeros_like(weights), np.zeros_like(padded)
    for i, j in _taps(*weights.shape[:2]):
        window = (slice(None), slice(i, i + x.shape[1]), slice(j, j + x.shape[2]))
        slope[i, j] = (back * padded[window]).sum(axis=(0, 1, 2))
        inner[window] += back * weights[i, j]
    result["depthwise/weights"], result["depthwise/bias"] = slope[None], back.sum(axis=(0, 1, 2))
    return _cropped(inner, weights.shape[0])


def _cropped(padded: Array, kernel: int) -> Array:
    edge = kernel // 2
    return padded[:, edge : padded.shape[1] - edge, edge : padded.shape[2] - edge]


def _max_pool(x: Array) -> Array:
    """2 x 2, stride 2."""
    count, height, width, channels = x.shape
    pooled: Array = x.reshape(count, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
    return pooled


def _max_pool_back(back: Array, x: Array, pooled: Array) -> Array:
    """Where several inputs are the maximum, each gets the gradient."""

    def spread(values: Array) -> Array:
        return values.repeat(2, axis=1).repeat(2, axis=2)

    return np.multiply(spread(back), x == spread(pooled))
