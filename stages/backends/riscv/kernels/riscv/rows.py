"""Layout of rows and weights in the words of `panels32.h` and `panels64.h`."""

from dataclasses import dataclass

ROWS = 6
GROUP = 4  # elements whose products are counted at once on 32 bits
_GROUPS_OF_MASK = 16


@dataclass(frozen=True)
class Rows:
    """Six rows of `row` elements on a core with words of `word_bits` bits."""

    row: int
    word_bits: int

    @property
    def panel(self) -> int:
        """Columns per panel."""
        return 8 if self.word_bits == 64 else 2

    @property
    def depth(self) -> int:
        """Elements per row, rounded up to whole groups."""
        return self.row if self.word_bits == 64 else -(-self.row // GROUP) * GROUP

    @property
    def words(self) -> int:
        """Scratch for packed rows, in int32 words."""
        return self.depth * (4 if self.word_bits == 64 else 3)

    @property
    def header(self) -> int:
        """Header bytes of a panel: number and positions of the counts."""
        return 0 if self.word_bits == 64 else 2 + 2 * -(-self.depth // (GROUP * _GROUPS_OF_MASK))

    @property
    def panel_bytes(self) -> int:
        """Bytes of a panel of weights with its header."""
        return self.header + self.panel * self.depth

    def whole_columns(self, columns: int) -> int:
        """Columns rounded up to whole panels."""
        return -(-columns // self.panel) * self.panel
