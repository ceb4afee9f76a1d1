/* Rows of runs of an element-wise layer. In a run each operand has consecutive elements or repeats one element. */
#pragma once

#include <stdint.h>

/* `rows` runs of `count` elements; row0, row1, y_row: bytes from a run to the next. */
struct arm_dsp_rows {
    int32_t rows, count, row0, row1, y_row;
};
