/* Rows of runs of an element-wise layer. In a run each operand has consecutive elements or repeats one element. */
#ifndef FIRMLINE_ARM_DSP_ROWS_H
#define FIRMLINE_ARM_DSP_ROWS_H

#include <stdint.h>

/* `rows` runs of `count` elements; row0, row1, y_row: bytes from a run to the next. */
struct arm_dsp_rows {
    int32_t rows, count, row0, row1, y_row;
};

#endif
