"""Helpers in model.h: conversions of inputs and outputs to real numbers, class names."""

from collections.abc import Iterable, Mapping
from typing import Any

#: Smallest and largest value of the types with conversion functions.
_LIMITS = {"int8_t": (-128, 127), "uint8_t": (0, 255), "int16_t": (-32768, 32767)}


def conversions(ports: Iterable[Mapping[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """Return the quantized inputs and outputs as variables of conversions.h.j2.

    ports  macro, ctype and is_quantized of inputs and outputs; is_quantized: one scale for all elements
    """
    return [
        {
            "macro": port["macro"],
            "name": port["macro"].removeprefix(f"{prefix.upper()}_").lower(),
            "ctype": port["ctype"],
            "least": _LIMITS[port["ctype"]][0],
            "most": _LIMITS[port["ctype"]][1],
        }
        for port in ports
        if port["is_quantized"] and port["ctype"] in _LIMITS
    ]


def c_string(text: str) -> str:
    """Return a C string literal of the text in UTF-8, without trigraphs."""
    return '"' + "".join(_escaped(byte) for byte in text.encode("utf-8", "replace")) + '"'


def _escaped(byte: int) -> str:
    letter = chr(byte)
    if letter in '"\\?':
        return f"\\{letter}"
    return letter if " " <= letter <= "~" else f"\\{byte:03o}"
