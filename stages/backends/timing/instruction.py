"""One decoded instruction, with the facts that timing models use."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """A decoded line of disassembly.

    address    in bytes; `size` is 2 or 4
    text       mnemonic and operands as disassembled, for messages
    mnemonic   without width, condition and type
    reads      registers that it reads, those of addresses too
    writes     registers that it writes
    addresses  registers that make up the address of a load or store
    registers  registers of 32 bits in its list
    facts      conditions of models: `writes_pc`, `pc_relative` (a load next to the code), `register_offset` (an
               address of two registers), `writeback` (the address register changes too), `double` (registers of
               64 bits), `core_register` (moves between floating-point and core registers), `short` (2 bytes),
               `shifted` (an operand is shifted), `backward` (branches to a lower address), `gather` (addresses in a
               vector), `bytes` (of bytes), `predicated` (a vector instruction in a VPT block), `lane` (moves a
               lane of a vector)
    skippable  whether it may be skipped by a condition
    accumulators  registers with the sum that it continues
    data       registers that it stores
    updates    address registers that it changes
    target     address that it branches to, -1 if none or unknown
    """

    address: int
    size: int
    text: str
    mnemonic: str
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()
    registers: int = 0
    facts: frozenset[str] = frozenset()
    skippable: bool = False
    accumulators: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()
    updates: frozenset[str] = frozenset()
    target: int = -1

    @property
    def end(self) -> int:
        """Address after the instruction."""
        return self.address + self.size
