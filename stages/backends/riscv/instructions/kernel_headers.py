"""Generate the headers of kernels from a declared instruction set.

Its operations become C functions and assembler macros. The assembler gets instructions by `.insn`, so it needs no
support of the extension.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from stages.backends.riscv.instructions.declaration import Instruction, InstructionSet, Word, instruction_set

C_HEADER = "rvp_operations.h"
ASM_HEADER = "rvp_operations_asm.h"

#: Instructions of RV32I and RV64I with M in expressions of operations, as C expressions.
_BASE = {
    "add": "{} + {}",
    "mulh": "(rvp_word)(((int64_t)(intptr_t){} * (intptr_t){}) >> 32)",  # of RV32
    "slli": "{} << {}",
    "srli": "{} >> {}",
    "srai": "(rvp_word)((intptr_t){} >> {})",
}

#: LD of Zilsd 1.0 has the encoding of RV64's LD; its register is even.
_LOAD_PAIR = """\
#define RVP_LOADS_PAIRS 1

/* Two words, from a multiple of 8, into \\rd and the register after it. */
.macro load_two_words rd, address:vararg
    .insn i 0x03, 3, \\rd, \\address
.endm
"""


@cache
def kernel_headers(name: str, version: str, word_bits: Word, *, loads_pairs: bool = False) -> Mapping[str, str]:
    """Return the headers of an extension's version by file name.

    Raises StageError for an unknown version.
    `loads_pairs`: the core loads two registers at once (Zilsd on RV32).
    """
    declared = instruction_set(name, version)
    guard = f"FIRMLINE_{C_HEADER.upper().replace('.', '_')}"
    title = f"/* RISC-V P, draft {version}, RV{word_bits}: {{}} Generated from {name}-{version}.yaml. */\n"
    operations = declared.operations_on(word_bits)
    functions = [_function(declared, *item) for item in operations.items()]
    macros = [macro for item in operations.items() if (macro := _macro(declared, *item))]
    return {
        C_HEADER: title.format("operations of kernels as C functions.")
        + f"#ifndef {guard}\n#define {guard}\n\n{''.join(functions)}#endif\n",
        ASM_HEADER: title.format("operations of kernels as macros of assembly.")
        + "\n"
        + "".join(macros)
        + (_LOAD_PAIR if loads_pairs else ""),
    }


def _call(expression: str) -> ast.Call:
    node = ast.parse(expression, mode="eval").body
    assert isinstance(node, ast.Call), expression
    return node


def _function(declared: InstructionSet, name: str, operation: tuple[list[str], Sequence[str]]) -> str:
    """Return a C function: a statement per instruction of the first expression, inside out."""
    arguments, expressions = operation
    statements: list[str] = []

    def value(node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return "x0"
        if isinstance(node, ast.Name):
            return node.id
        assert isinstance(node, ast.Call)
        called, result = ast.unparse(node.func), f"t{len(statements)}"
        if called in _BASE:
            words = [ast.unparse(each) if isinstance(each, ast.Constant) else value(each) for each in node.args]
            result = f"t{len(statements)}"
            statements.append(f"    const rvp_word {result} = {_BASE[called].format(*words)};\n")
            return result
        instruction = declared.instructions[called]
        immediate, registers = _split(instruction, node.args)
        sources = [value(each) for each in registers]
        result = f"t{len(statements)}"
        statements.append(_statement(instruction, immediate, result, sources))
        return result

    result = value(_call(expressions[0]))
    parameters = ", ".join(f"rvp_word {argument}" for argument in arguments)
    return (
        f"/* {expressions[0]} */\nRVP_INLINE rvp_word rvp_{name.replace('.', '_')}({parameters})\n{{\n"
        f"{''.join(statements)}    return {result};\n}}\n\n"
    )


def _split(instruction: Instruction, arguments: Sequence[ast.expr]) -> tuple[int, list[ast.expr]]:
    """Return the immediate and the register sources of a call."""
    if not instruction.immediate_bits:
        return 0, list(arguments)
    last = arguments[-1]
    assert isinstance(last, ast.Constant)
    assert isinstance(last.value, int)
    return last.value, list(arguments[:-1])


def _statement(instruction: Instruction, immediate: int, result: str, sources: Sequence[str]) -> str:
    if instruction.reads_result:
        first, others, constraint = sources[0], sources[1:], "+r"
        declaration = f"    rvp_word {result} = {first};\n"
    else:
        others, constraint, declaration = sources, "=r", f"    rvp_word {result};\n"
    values = [source for source in others if source != "x0"]
    inputs = ", ".join(f'"r"({source})' for source in values)
    names = ["x0" if source == "x0" else f"%{values.index(source) + 1}" for source in others]
    text = insn(instruction, immediate, "%0", names)
    return f'{declaration}    __asm__("{text}" : "{constraint}"({result}) : {inputs});\n'


def insn(instruction: Instruction, immediate: int, result: str, sources: Sequence[str]) -> str:
    """Return the assembler's text; `sources` are rs1, rs2 and rs3 as far as they are registers."""
    word = instruction.encoding.match | immediate << 20
    opcode, funct3, funct7, field = word & 0x7F, word >> 12 & 7, word >> 25, word >> 20 & 31
    if "c" in instruction.registers:
        return f".insn r4 {opcode:#x}, {funct3}, {funct7 & 3}, {result}, {', '.join(sources)}"
    second = sources[1] if "b" in instruction.registers else f"x{field}"
    return f".insn r {opcode:#x}, {funct3}, {funct7:#04x}, {result}, {sources[0]}, {second}"


def _macro(declared: InstructionSet, name: str, operation: tuple[list[str], Sequence[str]]) -> str:
    """Return an assembler macro `NAME rd, sources`; '' for an operation of many instructions."""
    arguments, expressions = operation
    calls = [_call(expression) for expression in expressions]
    if any(isinstance(each, ast.Call) for call in calls for each in call.args):
        return ""
    names = [argument for argument in arguments if argument != "d"]
    lines = _lines(declared, calls[0])
    head = f".macro {name} rd, {', '.join(names)}\n"
    overwritten = [_overwritten(declared, call) for call in calls]
    if overwritten[0] in (None, "d"):
        return f"{head}    {lines}\n.endm\n\n"
    # The result is also a source: choose the instruction whose source it is, or copy that source first.
    body = ""
    for source, call in zip(overwritten, calls, strict=True):
        body += f"    .ifc \\rd, \\{source}\n    {_lines(declared, call)}\n    .else\n"
    body += f"    mv \\rd, \\{overwritten[0]}\n    {lines}\n" + "    .endif\n" * len(calls)
    return f"{head}{body}.endm\n\n"


def _overwritten(declared: InstructionSet, call: ast.Call) -> str | None:
    """Return the argument whose register the instruction overwrites."""
    instruction = declared.instructions.get(ast.unparse(call.func))
    return ast.unparse(call.args[0]) if instruction is not None and instruction.reads_result else None


def _lines(declared: InstructionSet, call: ast.Call) -> str:
    called = ast.unparse(call.func)
    word: Callable[[ast.expr], str] = lambda node: f"\\{node.id}" if isinstance(node, ast.Name) else ast.unparse(node)  # noqa: E731
    if called in _BASE:
        return f"{called} \\rd, {', '.join(map(word, call.args))}"
    instruction = declared.instructions[called]
    immediate, registers = _split(instruction, call.args)
    sources = ["x0" if isinstance(node, ast.Constant) else word(node) for node in registers]
    return insn(instruction, immediate, "\\rd", sources[1:] if instruction.reads_result else sources)
