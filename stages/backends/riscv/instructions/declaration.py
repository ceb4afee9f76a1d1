"""Load the declaration of an instruction set: `<name>-<version>.yaml` in this folder."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from stages.support.messages.stage_error import StageError
from stages.support.messages.wording import did_you_mean
from stages.support.options.strict_model import StrictModel

_FOLDER = Path(__file__).resolve().parent
_FUNCTIONS = "abs bits clip clz cls max min rshift rshr sat select shift usat wrap"  # of model.py
_LANES = "s8 s16 s32 s64 u8 u16 u32 u64"
_NAMES = frozenset(f"a b c d i n xlen {_FUNCTIONS} {_LANES}".split())  # in a meaning
_OPERAND = re.compile(r"[dabcDABC]\+?|n\d")
_IMMEDIATE = re.compile(r"n(\d)")
_SIGNATURE = re.compile(r"([\w.]+)\((\w+(?:, \w+)*)\)")

Word = Literal[32, 64]


class Encoding(StrictModel):
    """Bits that identify the instruction: `word & mask == match`."""

    match: int
    mask: int


class Instruction(StrictModel):
    """One instruction.

    operands  d, a, b, c: registers rd, rs1, rs2, rs3; `d+` is read too; a capital letter is an even/odd pair of
              registers on RV32; `n5` is an unsigned immediate of 5 bits from bit 20 on
    xlen      32 or 64 if the instruction exists on RV32 or RV64 only
    lanes     bits of a lane of the result; 64 also stands for the whole register on RV32
    meaning   value of lane `i` of the result: an expression of Python and C++ with the functions of model.py
    """

    operands: tuple[str, ...]
    encoding: Encoding
    xlen: Word | None = None
    lanes: Literal[8, 16, 32, 64]
    meaning: str

    @field_validator("operands")
    @classmethod
    def _known_operands(cls, operands: tuple[str, ...]) -> tuple[str, ...]:
        for operand in operands:
            if not _OPERAND.fullmatch(operand):
                raise ValueError(f"operand '{operand}' is not one of d, d+, a, b, c, n5")
        return operands

    @field_validator("meaning")
    @classmethod
    def _known_names(cls, meaning: str) -> str:
        try:
            tree = ast.parse(meaning, mode="eval")
        except SyntaxError as error:
            raise ValueError(f"'{meaning}' is not an expression: {error.msg}") from None
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if unknown := sorted(names - _NAMES):
            raise ValueError(f"the meaning has the unknown name '{unknown[0]}'{did_you_mean(unknown[0], _NAMES)}")
        return meaning

    @property
    def registers(self) -> list[str]:
        """The register operands in lower case, without marks: `[d, a, b]`."""
        return [operand.rstrip("+").lower() for operand in self.operands if not _IMMEDIATE.fullmatch(operand)]

    @property
    def pairs(self) -> frozenset[str]:
        """The operands that are pairs of registers on RV32."""
        return frozenset(operand.rstrip("+").lower() for operand in self.operands if operand[0].isupper())

    @property
    def reads_result(self) -> bool:
        """Whether the result register is a source too."""
        return any(operand.endswith("+") for operand in self.operands)

    @property
    def immediate_bits(self) -> int:
        """Bits of the immediate; 0 without an immediate."""
        return next((int(match[1]) for operand in self.operands if (match := _IMMEDIATE.fullmatch(operand))), 0)

    def exists_on(self, word_bits: int) -> bool:
        """Return whether cores of this word size have the instruction."""
        return self.xlen in (None, word_bits)

    def word(self, fields: Mapping[str, int], immediate: int = 0) -> int:
        """Return the instruction word for the register numbers of `fields` (d, a, b, c)."""
        places = {"d": 7, "a": 15, "b": 20, "c": 27}
        word = self.encoding.match | immediate << 20
        for name in self.registers:
            word |= fields[name] << places[name]
        return word


def _by_word(value: Any) -> Any:
    by_word = value if isinstance(value, dict) else {32: value, 64: value}
    return {word: [each] if isinstance(each, str) else each for word, each in by_word.items()}


class InstructionSet(StrictModel):
    """One version of an extension.

    operations  calls in kernels, such as `smaqa(d, a, b)`, as expressions of instructions, by word size.
                Alternatives differ in the source whose register they overwrite
    """

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    version: str
    source: str
    status: str
    instructions: dict[str, Instruction]
    operations: dict[str, Annotated[dict[Word, tuple[str, ...]], BeforeValidator(_by_word)]] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _known_operations(self) -> InstructionSet:
        for signature in self.operations:
            if not _SIGNATURE.fullmatch(signature):
                raise ValueError(f"operations: '{signature}' should be like 'dot(d, a, b)'")
        return self

    def on(self, word_bits: int) -> dict[str, Instruction]:
        """Return the instructions of a core by their names in the declaration."""
        return {name: each for name, each in self.instructions.items() if each.exists_on(word_bits)}

    def operations_on(self, word_bits: Word) -> dict[str, tuple[list[str], tuple[str, ...]]]:
        """Return arguments and expressions of each operation of a core by its name."""
        operations: dict[str, tuple[list[str], tuple[str, ...]]] = {}
        for signature, by_word in self.operations.items():
            match = _SIGNATURE.fullmatch(signature)
            assert match is not None, signature
            if word_bits in by_word:
                operations[match[1]] = match[2].split(", "), by_word[word_bits]
        return operations


def file_of(name: str, version: str) -> Path:
    """Return the file of a version, which may be missing."""
    return _FOLDER / f"{name}-{version}.yaml"


def versions(name: str) -> list[str]:
    """Return the declared versions of an extension, sorted by their numbers."""
    names = (path.stem.removeprefix(f"{name}-") for path in _FOLDER.glob(f"{name}-*.yaml"))
    return sorted(names, key=lambda version: [int(part) if part.isdigit() else 0 for part in version.split(".")])


@cache
def instruction_set(name: str, version: str) -> InstructionSet:
    """Return the declaration. Raises StageError with the known versions for an unknown version."""
    require_version(name, version)
    return load(file_of(name, version))


def require_version(name: str, version: str) -> None:
    """Raise StageError with the known versions if a version has no declaration. Reads no file."""
    if version not in versions(name):
        file = file_of(name, version).name
        hint = f"known: {', '.join(versions(name))}; a new version is a file {file} beside theirs"
        raise StageError(f"extension {name}: draft {version!r} is unknown to the toolchain", hint=hint, at=("target",))


@cache
def load(path: Path) -> InstructionSet:
    """Return the declaration in a file. Raises StageError with the first mistake and its place."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return InstructionSet.model_validate(yaml.load(path.read_text(), loader))
    except OSError as error:
        raise StageError(f"instruction set {path.name} cannot be read: {error.strerror}", at=("target",)) from None
    except yaml.YAMLError as error:
        raise StageError(f"instruction set {path.name} is not YAML: {error}", at=("target",)) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = [".".join(map(str, first["loc"]))] if first["loc"] else []
        message = ": ".join([f"instruction set {path.name}", *where, first["msg"].removeprefix("Value error, ")])
        raise StageError(message, at=("target",)) from None
