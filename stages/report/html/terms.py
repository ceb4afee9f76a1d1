"""Definitions of the glossary that the page shows: as tooltips, and in a list at its end.

A test compares them with docs/glossary.md.
"""

from collections.abc import Iterator
from html import escape

from markupsafe import Markup

DEFINITIONS = {
    "accelerator": "Hardware beside the core that computes whole layers or tiles: an engine, its memory and a DMA.",
    "action key": "SHA-256 over an action's ingredients. The artifact store addresses artifacts by it.",
    "advice": "A change that can save time or bytes, with the figures that prove it and the command that tries it.",
    "arena": (
        "A static memory block for activations and kernel scratch, planned at build time. Each memory region has "
        "at most one."
    ),
    "candidate": (
        "A possible implementation of a layer, with a kernel, its parameters and its cost. Tensorize chooses one "
        "per layer."
    ),
    "constant": "A tensor whose values are known at build time, such as weights and biases.",
    "core": "ISA, ABI, compiler flags, kernel folders and simulator of a processor. A core is a target.",
    "count": "Instructions or cycles that a simulator measured.",
    "engine": (
        "The computing unit of an accelerator, without its memory and DMA. The core starts it through its C library."
    ),
    "estimated cycles": (
        "Cycles that a timing model derives from the executed instructions. They are not measured on hardware."
    ),
    "inference": "One computation of a network: from its inputs to its outputs.",
    "kernel": "A C or assembly function with a descriptor. It computes layers of one kind for an instruction set.",
    "label": "The expected class of a sample.",
    "layer": "A node of the integer graph. An operator of the model becomes one layer, several or none.",
    "layout": "The order of a tensor's axes in memory, with blocks and bits, such as `NHWC`, `NCHW16c`, `OHWI4i:4`.",
    "MAC": "Multiply-accumulate: one multiplication whose result is added to a sum. Figures give instructions per MAC.",
    "operator": "A node of the imported file, such as TFLite's `CONV_2D`.",
    "post-training quantization": (
        "Conversion of a float model into an integer model with calibration data, by stage `ptq`."
    ),
    "RAM": "In a report: data, zero-initialized data with the arena, and the measured stack, in bytes.",
    "reference": (
        "The interpreter that defines correct outputs: LiteRT's reference kernels, for ONNX files ONNX Runtime."
    ),
    "ROM": "In a report: code, weights and other constants of the firmware, in bytes.",
    "rolling buffer": (
        "Memory of a few rows of an image, inside a streamed group. Rows that no layer needs any more make place for "
        "new ones."
    ),
    "stack": "The memory of function calls. Reports have the bytes that the run used.",
    "streamed group": "Consecutive layers that make a few rows in a call, as soon as the next layer needs them.",
    "toolchain": "Compiler, assembler, linker and C library of a target.",
}


class Terms:
    """The terms that a page uses. `link` and `hint` record them, `used` lists them."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def link(self, name: str, text: str = "") -> Markup:
        """Return a link to the definition at the end of the page, with the definition as tooltip."""
        anchor = name.replace(" ", "-")
        return self._marked(name, f'<a class="term" href="#term-{anchor}"', text, "</a>")

    def hint(self, name: str, text: str = "") -> Markup:
        """Return the text with its definition as tooltip, where a click does something else."""
        return self._marked(name, '<abbr class="term"', text, "</abbr>")

    def used(self) -> Iterator[tuple[str, str]]:
        """Yield name and definition of each term that the page used."""
        for name in sorted(self._used, key=str.lower):
            yield name, DEFINITIONS[name]

    def _marked(self, name: str, start: str, text: str, end: str) -> Markup:
        from markupsafe import Markup

        self._used.add(name)
        return Markup(f'{start} title="{escape(DEFINITIONS[name])}">{escape(text or name)}{end}')
