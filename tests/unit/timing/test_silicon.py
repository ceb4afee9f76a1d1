"""Measurements on silicon: the shipped file, and the errors about wrong ones."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import RecipeError
from pipeline.project import Project
from pipeline.recipes.silicon import FILE, load_silicon
from stages.backends.timing.silicon import Silicon
from stages.delivery.bench.silicon import PUBLISHED
from stages.support.system.installation import INSTALLATION

CHIP = "  mine: {title: My board, core: cortex-m4, clock: 80M, source: data sheet}\n"
ROW = "  - {chip: mine, code: firmline, version: '1', compiler: GCC 14, run: kws, ms: 5, source: measured}\n"
CHIP_LINE, ROW_LINE = 3, 5


def project_with(tmp_path: Path, chip: str = CHIP, rows: str = ROW) -> Project:
    (tmp_path / FILE).write_text(f"schema: 1\nchips:\n{chip}measurements:\n{rows}")
    return Project(tmp_path)


def marked_rows(silicon: Silicon) -> Iterator[bool]:
    """Whether the rule in silicon.yaml marks each row `fit`."""
    seen: Counter[str] = Counter()
    for row in silicon.measurements:
        counts = row.kind == "silicon" and row.code in PUBLISHED and silicon.is_compared(row)
        yield counts and seen[silicon.core(row)] % 3 == 0
        seen[silicon.core(row)] += counts


def test_the_shipped_file_loads_and_marks_rows_by_its_rule() -> None:
    silicon = load_silicon(INSTALLATION)
    known = {silicon.core(row) for row in silicon.measurements if silicon.chips[row.chip].core}
    assert len(silicon.measurements) >= 60
    assert len(known) >= 8
    assert [row.fit for row in silicon.measurements] == list(marked_rows(silicon))


def test_rows_of_a_project_follow_the_shipped_ones(tmp_path: Path) -> None:
    silicon = load_silicon(project_with(tmp_path, rows=ROW + ROW.replace("mine", "apollo510")))
    assert [silicon.cycles(row) for row in silicon.measurements[-2:]] == [400_000, 480_000]
    assert len(silicon.measurements) == len(load_silicon(INSTALLATION).measurements) + 2


@pytest.mark.parametrize(
    ("chip", "rows", "line", "message"),
    [
        (CHIP, ROW.replace("ms: 5", "us: 5"), ROW_LINE, "unknown key 'us'"),
        (CHIP, ROW.replace("ms: 5", "ms: 5ms"), ROW_LINE, "should be a number; its unit is in the key, is '5ms'"),
        (CHIP, ROW.replace("ms: 5", "ms: -5"), ROW_LINE, "should be greater than 0, is -5"),
        (CHIP, ROW.replace("ms: 5", "ms: 5, cycles: 5"), ROW_LINE, "has cycles and ms"),
        (CHIP, ROW.replace(", ms: 5", ""), ROW_LINE, "should have cycles, ms or energy_uj"),
        (CHIP, ROW.replace(", source: measured", ""), ROW_LINE, "missing key 'source'"),
        (CHIP, ROW.replace("mine", "apolo510"), ROW_LINE, "unknown chip 'apolo510'; did you mean 'apollo510'?"),
        (CHIP, ROW.replace("firmline,", "tinymax,"), ROW_LINE, "did you mean 'tinymaix'?"),
        (CHIP, ROW.replace("firmline,", "closed, fit: true,"), ROW_LINE, "closed code cannot be compiled"),
        (CHIP, ROW.replace("ms: 5", "ms: 5, compared: false"), ROW_LINE, "should have a note that says why"),
        (CHIP, ROW.replace("ms: 5", "ms: 5, compared: false, fit: true"), ROW_LINE, "the row is not compared, so"),
        (CHIP, ROW + ROW, ROW_LINE + 1, "measures the same as an earlier row"),
        (CHIP, ROW + ROW, ROW_LINE + 1, "measurements.0 is at silicon.yaml:5:5"),
        (CHIP.replace("cortex-m4", "cortex-m44"), ROW, CHIP_LINE,
         "unknown core 'cortex-m44'; did you mean 'cortex-m4'?"),
        (CHIP.replace("core:", "core_title: M4, core:"), ROW, CHIP_LINE, "should have either core, or core_title"),
        (CHIP.replace("80M", "80"), ROW, CHIP_LINE, "should be greater than or equal to 100000, is 80"),
        (CHIP.replace("80M", "80MHz"), ROW, CHIP_LINE, "a clock is a number of Hz, or a number with k, M or G"),
        (CHIP.replace("clock", "board: nucleo, clock"), ROW, CHIP_LINE, "unknown board 'nucleo'"),
        (CHIP.replace("clock", "flash: {region: rm, wait_states: 3, source: a}, clock"), ROW, CHIP_LINE,
         "chips.mine.flash.region: unknown region 'rm'; did you mean 'rom'?"),
        (CHIP.replace("core: cortex-m4", "core: rv32imc-scalar, board: esp32-c3"), ROW, CHIP_LINE,
         "chips.mine.board: unknown region 'irom'"),
        (CHIP.replace("mine", "apollo510"), ROW.replace("mine", "apollo510"), CHIP_LINE, "has this chip; choose"),
    ],
)  # fmt: skip
def test_wrong_files(tmp_path: Path, chip: str, rows: str, line: int, message: str) -> None:
    with pytest.raises(RecipeError) as error:
        load_silicon(project_with(tmp_path, chip, rows))
    assert error.value.message.startswith(f"{FILE}:{line}:"), error.value
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) <= 5
