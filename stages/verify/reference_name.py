"""Short name of the reference, for messages."""


def reference_name(described: str) -> str:
    """Return "ONNX Runtime" or "LiteRT" for a reference's description, as in verify.json."""
    return "ONNX Runtime" if described.startswith("ONNX") else "LiteRT"
