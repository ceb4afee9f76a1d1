"""Bounds of fused activations, in real numbers."""

Bounds = tuple[float | None, float | None]

# By name, in the order of the schema's ActivationFunctionType; None: no bound.
BOUNDS: dict[str, Bounds] = {
    "NONE": (None, None),
    "RELU": (0.0, None),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU6": (0.0, 6.0),
}
