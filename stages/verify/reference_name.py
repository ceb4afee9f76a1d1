"""Who says what is right, in a word."""

from __future__ import annotations


def reference_name(described: str) -> str:
    """ "ONNX Runtime" or "LiteRT", of what a reference is `described` as, in verify.json too."""
    return "ONNX Runtime" if described.startswith("ONNX") else "LiteRT"
