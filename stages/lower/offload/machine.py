"""The hardware that a network is planned for: engine, bytes of L1, cycles of commands."""

from dataclasses import dataclass
from typing import Any

from stages.backends.accelerators.accelerator import Accelerator
from stages.backends.targets.attached import Dma
from stages.lower.offload.program import Transfer

ALIGNMENT = 16
"""Alignment of buffers in L1, in bytes."""

# Instructions of the core for a command, in the drivers compiled by GCC with -O2.
TRANSFER = 32
FENCE = 10
AWAIT = 14
LAYER = 12
_COPY_RUN, _COPY_WORD, _COPY_BYTE = 20, 3, 3


@dataclass(frozen=True)
class Machine:
    """An accelerator with its memory. `dma` is None if the core copies."""

    accelerator: Accelerator[Any]
    memory: str
    bytes: int
    dma: Dma | None

    def dma_cycles(self, transfer: Transfer) -> int:
        """Return the DMA's cycles for a transfer."""
        return 0 if self.dma is None else self.dma.cycles(transfer.runs, transfer.runs * transfer.bytes)

    def transfer_cost(self, transfer: Transfer) -> int:
        """Return the cycles of a transfer: of the DMA, or of the core."""
        return self.transfer_instructions(transfer) if self.dma is None else self.dma_cycles(transfer)

    def transfer_instructions(self, transfer: Transfer) -> int:
        """Return the core's instructions to start a transfer, or to copy by itself."""
        if self.dma is not None:
            return TRANSFER
        strides = transfer.to_stride | transfer.source_stride if transfer.runs > 1 else 0
        words = transfer.bytes // 4 if strides % 4 == 0 else 0
        return TRANSFER + transfer.runs * (_COPY_RUN + _COPY_WORD * words + _COPY_BYTE * (transfer.bytes - 4 * words))


def aligned(count: int) -> int:
    """Return the bytes of L1 that a buffer of `count` bytes takes."""
    return -(-count // ALIGNMENT) * ALIGNMENT
