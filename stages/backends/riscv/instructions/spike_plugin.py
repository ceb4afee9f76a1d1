"""Generate the C++ of a Spike plug-in from the declaration of an instruction set."""

import re
from collections.abc import Mapping

from stages.backends.riscv.instructions.declaration import Instruction, InstructionSet

_PER_FILE = 80  # instructions of a file, so that several processors compile

_PART = """\
#define INT {integer}
#include "meaning.h"

namespace rvp {{
namespace {{

{structs}
}}  // namespace

std::vector<Instruction> {function}() {{
  return {{
{entries}
  }};
}}

}}  // namespace rvp
"""
_ALL = """\
#include "instruction.h"

namespace rvp {{

{declared}

std::vector<Instruction> all_instructions() {{
  std::vector<Instruction> all;
  for (const auto& part : {{{parts}}}) all.insert(all.end(), part.begin(), part.end());
  return all;
}}

}}  // namespace rvp
"""


def plugin_sources(declared: InstructionSet) -> dict[str, str]:
    """Return generated files by name. They need the files of ../spike/plugin beside them."""
    by_integer: dict[str, dict[str, Instruction]] = {"int64_t": {}, "__int128": {}}
    for name, instruction in declared.instructions.items():
        by_integer[_integer(instruction)][name] = instruction
    files: dict[str, str] = {}
    for integer, instructions in by_integer.items():
        names = list(instructions)
        for begin in range(0, len(names), _PER_FILE):
            function = f"part{len(files)}"
            part = {name: instructions[name] for name in names[begin : begin + _PER_FILE]}
            files[f"{function}.cc"] = _part(function, integer, part)
    functions = [name.removesuffix(".cc") for name in files]
    name = f'#define EXTENSION {declared.name}\n#define EXTENSION_NAME "{declared.name}"\n'
    return files | {"all.cc": _all(functions), "name.h": name}


def _integer(instruction: Instruction) -> str:
    """Return the C++ type that holds all intermediate values of a meaning."""
    meaning = instruction.meaning
    is_wide = instruction.lanes == 64 or "64(" in meaning
    is_wide |= "u32(" in meaning and ("*" in meaning or "shift(" in meaning)
    return "__int128" if is_wide else "int64_t"


def _part(function: str, integer: str, instructions: Mapping[str, Instruction]) -> str:
    structs = "\n".join(_struct(name, instruction) for name, instruction in instructions.items())
    entries = "\n".join(
        f'      instruction<{_identifier(name)}, {_flag(each, 32)}, {_flag(each, 64)}>("{name.removesuffix(".rv32")}"),'
        for name, each in instructions.items()
    )
    return _PART.format(integer=integer, structs=structs, function=function, entries=entries)


def _flag(instruction: Instruction, word_bits: int) -> str:
    return str(instruction.exists_on(word_bits)).lower()


def _identifier(name: str) -> str:
    return "i_" + name.replace(".", "_")


def _struct(name: str, instruction: Instruction) -> str:
    encoding, lanes = instruction.encoding, instruction.lanes
    used = set(re.findall(r"\b[abcdn]\b", instruction.meaning))
    sources = "".join(f"    const uint64_t {each} = o.{each};\n" for each in "dabc" if each in used)
    mask = (1 << instruction.immediate_bits) - 1
    sources += f"    const int n = o.immediate & {mask};\n" if "n" in used else ""
    sources += "    constexpr int xlen = XLEN;\n" if re.search(r"\bxlen\b", instruction.meaning) else ""
    width = "64" if lanes == 64 or "d" in instruction.pairs else "XLEN"
    pairs = ", ".join(str(each in instruction.pairs).lower() for each in "dab")
    index = "int i" if re.search(r"\bi\b", instruction.meaning) else "int"
    return (
        f"struct {_identifier(name)} {{\n"
        f"  static constexpr Encoding encoding{{{encoding.match:#010x}, {encoding.mask:#010x}}};\n"
        f"  static constexpr Pairs pairs{{{pairs}}};\n"
        "  template <int XLEN>\n"
        "  static uint64_t run(const Operands& o) {\n"
        f"{sources}"
        f"    return lanes<{width}, {lanes}>([&]({index}) {{ return {instruction.meaning}; }});\n"
        "  }\n};\n"
    )


def _all(functions: list[str]) -> str:
    declared = "\n".join(f"std::vector<Instruction> {function}();" for function in functions)
    parts = ", ".join(f"{function}()" for function in functions)
    return _ALL.format(declared=declared, parts=parts)
