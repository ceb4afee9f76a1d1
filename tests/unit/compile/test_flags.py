"""Flags that a recipe may add: those that tune code reach the ELF, all others are refused with the reason."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from stages.backends.targets.load import load_target
from stages.base import StageError
from stages.compile import CompileConfig
from stages.compile.firmware import compile_firmware
from stages.compile.flags import check_flag
from tests.support.tiny_model import write_tiny_model

pytestmark = pytest.mark.compiles_anew

TUNE = """-O -O0 -O3 -Os -Og -Oz -g -g3 -ggdb -gdwarf-4 -fno-inline -funroll-loops -falign-functions=16 -fno-common
-fno-tree-vectorize -fomit-frame-pointer -fopenmp-simd -ffp-contract=off -fwrapv -fno-math-errno -ffunction-sections
-fno-builtin-memcpy -fvect-cost-model=cheap -finline-limit=20 -DX -DX=1 -DX="a" -UX -Wall -Wno-error -Wno-error=x
-Wframe-larger-than=100 -w --param=max-unroll-times=4 -mtune=sifive-7-series -mstrict-align -msave-restore -mno-relax"""

REFUSED = {
    "lets float results differ": """-Ofast -ffast-math -funsafe-math-optimizations -fassociative-math -freciprocal-math
        -ffinite-math-only -fno-signed-zeros -ffp-contract=fast -ffp-contract=on -fexcess-precision=fast -mrecip
        -fsingle-precision-constant -fcx-limited-range -mno-fused-madd""",
    "makes the compiler load code": """-wrapper -fplugin=x -fplugin-arg-x-y=z -specs=x --specs=x -B -B/x -fuse-ld=gold
        -fmodule-mapper=x -fuse-linker-plugin""",
    "changes the target": """-march=x -mabi=x -mcpu=x -mfloat-abi=soft -mfpu=x -mthumb -marm -m32 -mcmodel=x
        -misa-spec=2.2 -mbig-endian -mlong-calls -mstrict-aligned -msoft-float -mtp=soft""",
    "read or write other files": """-include -includex -imacros -I -I/x -isystem -iquote/x -idirafter -nostdinc -MD -MMD
        -save-temps -fdump-tree-all -fstack-usage -fprofile-use -fprofile-generate -gsplit-dwarf -ftest-coverage
        -fdiagnostics-format=sarif-file -ffile-prefix-map=a=b""",
    "passes unchecked flags to": "-Wl,-x -Wa,-x -Wp,-x -Xlinker -Xassembler -Xpreprocessor",
    "is for the linker": "-T -Tx -L -L/x -l -lx -flto -fno-lto -nostdlib -nostartfiles -static -shared -s -pie -z -u",
    "changes the ABI": "-fshort-enums -fno-short-wchar -fpack-struct=1 -funsigned-char -fPIC -fpie -ffixed-x5",
    "changes the compiler's output": "-c -E -S -o -ox -x -xc -v -### -pg -p -fsyntax-only -fself-test=x -Q",
    "run-time library": "-fsanitize=address -fopenmp -finstrument-functions -ftrapv -fstack-protector -fgnu-tm",
    "changes the language": "-std=c99 -ansi -trigraphs -ffreestanding",
    "is not known to tune": "--include=x --output=x --coverage --sysroot=/ --help -O9 -A -y",
    "it is not a flag": "x.c - O2",
    "reads flags from a file": "@x",
    "as one word": "-D -U --param",
    "depends on the machine": "-mtune=native",
}  # fmt: skip


@pytest.mark.parametrize("flag", TUNE.split())
def test_flags_that_tune_are_taken(flag: str) -> None:
    assert CompileConfig(flags=(flag,)).flags == (flag,)


@pytest.mark.parametrize(("reason", "flag"), [(why, flag) for why, flags in REFUSED.items() for flag in flags.split()])
def test_other_flags_are_refused_with_the_reason(reason: str, flag: str) -> None:
    with pytest.raises(ValidationError, match=reason) as caught:
        CompileConfig.model_validate({"flags": ["-g", flag]})
    assert caught.value.errors()[0]["loc"] == ("flags", 1)


@pytest.mark.parametrize("flag", ["", "-D X", "-O2 -g", "-DX=1\n-o", "-g\0", "-O2\n", "-" + "f" * 5000 + " "])
def test_what_is_no_single_word(flag: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_flag(flag)
    assert len(str(caught.value)) < 250 and "\n" not in str(caught.value)


def compiled(folder: Path, flags: list[str], source: str = "") -> bytes:
    """The ELF of a small model with the `flags` of a recipe, with this model.c where it is given."""
    model, out = write_tiny_model(folder / "src"), folder / "out"
    out.mkdir(parents=True)
    if source:
        (folder / "src/model.c").write_text(source)
    config = CompileConfig.model_validate({"flags": flags})
    compile_firmware(folder / "src", model, load_target("rv64-rvp"), out, config=config)
    return (out / "firmware.elf").read_bytes()


def test_a_list_reaches_the_code(tmp_path: Path) -> None:
    assert compiled(tmp_path / "plain", []) != compiled(tmp_path / "marked", ["-fno-inline", "-O0"])


@pytest.mark.parametrize("flag", ["-fno-such-thing", "--param=no-such-thing=3"])
def test_a_flag_that_gcc_does_not_know(tmp_path: Path, flag: str) -> None:
    with pytest.raises(StageError) as caught:
        compiled(tmp_path, ["-g", flag])
    assert caught.value.at == ("stages", "compile", "flags", 1)
    assert "error: " in caught.value.message


@pytest.mark.parametrize(
    ("flags", "number"), [(["-g", "-Dint8_t=short"], 1), (["-fno-inline", "-Dint8_t=short", "-Dint32_t=short"], 0)]
)
def test_a_flag_that_breaks_the_sources(tmp_path: Path, flags: list[str], number: int) -> None:
    """GCC does not say which; with two that break it, no single one is to blame."""
    with pytest.raises(StageError) as caught:
        compiled(tmp_path, flags)
    assert caught.value.at == ("stages", "compile", "flags", number)


def test_sources_that_no_flag_breaks(tmp_path: Path) -> None:
    with pytest.raises(StageError) as caught:
        compiled(tmp_path, ["-g", "-fno-inline"], "int broken(\n")
    assert caught.value.at == ()
