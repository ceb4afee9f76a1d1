"""GCC flags that a recipe may add: flags that tune code.

Not allowed are flags that load code, read or write other files, or stop the compiler early; flags that change the
ABI, the target or the link, which pipeline.yaml declares; and flags that let float results differ from the
reference's. Each flag is one word: `-DNAME=1`, not `-D NAME=1`. GCC reports unknown flags itself.
"""

import re
from collections.abc import Callable

from stages.support.messages import escape

_FILES = "makes the compiler read or write other files"
_CODE = "makes the compiler load code or run programs"
_OUTPUT = "changes the compiler's output or its place"
_TARGET = "changes the target, which is declared in pipeline.yaml"
_ABI = "changes the ABI, which all files and the C library must share"
_LINK = "is for the linker, which the target's architecture family controls"
_LIBRARY = "needs a run-time library that the firmware does not have"
_EXACT = "lets float results differ from the reference's"
_LANGUAGE = "changes the language that the sources are written in"
_OTHER = "is not known to tune code; allowed are -O, -f, -m (tuning), -D, -U, -W, -g and --param="

# Checked in this order. `(no-)?`: neither form of a flag is allowed.
_REFUSED = tuple(
    (re.compile(form), reason)
    for form, reason in (
        (r"@.*", "reads flags from a file"),
        (r"(?!-).*", "would be compiled as a source file: it is not a flag"),
        (r"-", "would be compiled as a source file: it is not a flag"),
        (r"-Ofast", _EXACT),
        (r"-f(no-)?(fast-math|unsafe-math-optimizations|associative-math|reciprocal-math|finite-math-only)", _EXACT),
        (r"-f(no-)?(signed-zeros|single-precision-constant|cx-limited-range|cx-fortran-rules|float-store)", _EXACT),
        (r"-f(no-)?(fp-int-builtin-inexact|rounding-math|signaling-nans)|-fpermitted-flt-eval-methods.*", _EXACT),
        (r"-ffp-contract=(?!off$).*|-fexcess-precision=(?!standard$).*", _EXACT),
        (r"-(wrapper|iplugindir|fplugin|fmodule|foffload|fpre-include|fuse-ld|fuse-linker-plugin).*", _CODE),
        (r"--?specs.*|-B.*|-fdbg-cnt.*|-f(enable|disable)-.*", _CODE),
        (r"-f(no-)?(lto|fat-lto|wpa|ltrans|resolution|whole-program|split-stack|linker-output).*", _LINK),
        (r"-f(no-)?(sanitize|openmp(?!-simd)|openacc|gnu-tm|instrument-functions|cilkplus).*", _LIBRARY),
        (r"-ftree-parallelize-loops.*|-f(no-)?(stack-protector|stack-check|vtv|patchable-function-entry).*", _LIBRARY),
        (r"-f(no-)?(trapv|non-call-exceptions|exceptions|harden).*", _LIBRARY),
        (r"-f(no-)?(dump|profile|auto-profile|branch-probabilities|test-coverage|stack-usage|callgraph).*", _FILES),
        (r"-f(no-)?(save-optimization-record|opt-info|compare-debug|randomize|pch|working-directory).*", _FILES),
        (r"-f(no-)?(mem-report|pre-ipa-mem-report|post-ipa-mem-report|report|time-report|checking).*", _OUTPUT),
        (r"-f(file|debug|macro|canon)-prefix-map.*|-fdiagnostics-format.*|-fdiagnostics-add-output.*", _FILES),
        (r"-f(no-)?(syntax-only|self-test|preprocessed|directives-only|analyzer|help|version|verbose-asm).*", _OUTPUT),
        (r"-f(no-)?(pack-struct|short-enums|short-wchar|short-double|pcc-struct-return|reg-struct-return)(=.*)?", _ABI),
        (r"-f(no-)?(signed-char|unsigned-char|signed-bitfields|unsigned-bitfields|leading-underscore)", _ABI),
        (r"-f(call-used|call-saved|fixed)-.*|-fabi-.*|-ftls-model.*|-f(no-)?(pic|PIC|pie|PIE|plt|visibility.*)", _ABI),
        (r"-f(input|exec|wide-exec)-charset.*|-fextended-identifiers", _LANGUAGE),
        (r"-std.*|-ansi|-traditional.*|-trigraphs|-f(no-)?(gnu89-inline|asm|hosted|freestanding|plan9-ext.*|ms-ext.*)",
         _LANGUAGE),
        (r"-g(no-)?split-dwarf|-gz.*", _FILES),
        (r"-W[lap],.*", "passes unchecked flags to the linker, the assembler or the preprocessor"),
        (r"-X.*", "passes unchecked flags to the linker, the assembler or the preprocessor"),
        (r"-(l|L|T|z|s|e|u|r|R|n|N|q|pie|no-pie|static.*|shared.*|nostdlib.*|nostart.*|nodefault.*|rdynamic|symbolic)",
         _LINK),
        (r"-[lLTzuR].*", _LINK),
        (r"-(I|include|imacros|isystem|iquote|idirafter|iprefix|iwith|isysroot|imulti|nostdinc).*", _FILES),
        (r"-(M|save-temps|dumpbase|dumpdir|aux-info|d[A-Z]|H$).*|-d.*", _FILES),
        (r"-([cSEovxP]|pipe|time|###|C|CC|pass-exit-codes|print.*|pg?)(=.*)?|-o.*|-x.*|-v.*|-Q.*", _OUTPUT),
        (r"-mtune=native", "depends on the machine that compiles"),
        (r"-m(no-)?(fused-madd|fma.*|recip.*|low-precision-.*|unsafe-.*|fp-exceptions.*|daz-ftz)", _EXACT),
    )
)  # fmt: skip
# Most -m flags change the instruction set or the ABI, so only known tuning flags are allowed.
_TUNING = re.compile(
    r"-mtune=\S+|-mbranch-cost=\d+|-msmall-data-limit=\d+|-mmemcpy-strategy=\S+|-mstringop-strategy=\S+"
    r"|-m(no-)?(strict-align|unaligned-access|save-restore|shorten-memrefs|relax|inline-atomics|slow-flash-data"
    r"|restrict-it|prefer-avx128|omit-leaf-frame-pointer|movcc|autovec-segment|vectorize-with-neon-\w+)"
)
_ALLOWED = re.compile(
    r"-O[0123sgz]?|-f[a-z][\w+-]*(=[\w.:-]+)?|-g[0-3]?|-g[a-z][\w+-]*(=[\w-]+)?|-D[A-Za-z_]\w*(=[^\n\0]*)?"
    r"|-U[A-Za-z_]\w*|-W[a-z][\w+-]*(=[\w-]+)?|-w|--param=[\w-]+=\d+"
)


def check_flag(flag: str) -> str:
    """Return the flag unchanged.

    Raises ValueError, with the reason, if a recipe may not use it.
    """
    if not flag:
        raise ValueError("a flag is empty")
    shown = escape.quoted(flag)
    for form, reason in _REFUSED:
        if form.fullmatch(flag):
            raise ValueError(f"the flag {shown} {reason}")
    if _TUNING.fullmatch(flag) or (_ALLOWED.fullmatch(flag) and not flag.startswith("-m")):
        return flag
    if re.fullmatch(r"-[DU]|--param", flag):
        raise ValueError(f"the flag {shown} has no value: write flag and value as one word, such as -DNAME=1")
    if re.search(r"\s", flag):
        raise ValueError(f"the flag {shown} contains a space: write each flag as an item of the list")
    reason = _TARGET if flag.startswith("-m") else _OTHER
    raise ValueError(f"the flag {shown} {reason}")


def blamed_flag(flags: tuple[str, ...], output: str, compiles: Callable[[tuple[str, ...]], bool]) -> int | None:
    """Return the number of the recipe's flag that caused a compiler error; None if no flag did.

    If the message names no flag, it is the first flag without which the file `compiles`. If several flags together
    cause the error, it is the first flag.
    """
    # Messages about the command line name no source file.
    messages = "\n".join(re.findall(r"^(?:\S*gcc|cc1): (?:error|note): (.*)$", output, re.MULTILINE))
    for number, flag in enumerate(flags):
        name = flag.partition("=")[0] if not flag.startswith("--param=") else flag.rpartition("=")[0]
        if any(re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", messages) for text in (flag, name)):
            return number
    if not flags or not compiles(()):
        return None
    return next((n for n in range(len(flags)) if compiles((*flags[:n], *flags[n + 1 :]))), 0)
