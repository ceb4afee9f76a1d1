/* Two operands of an element-wise layer. A row of an operand has one value per element, or a single value. */
#pragma once

#include "rvp_intrinsics.h"

/* `rows` of `count` elements, one after the other in the output: the first fields of a layer's structure. Steps of elements
 * are 1 or 0. Rows begin at multiples of a register, except in operands that repeat one value. If a row ends within a
 * register, the whole register is read. */
struct rvp_rows {
    int32_t rows, count;
    int32_t step0, step1; /* elements */
    int32_t row0, row1;   /* bytes */
};

/* Where an operand is read in a row. */
struct operand_reader {
    const int8_t *from;
    int advance; /* bytes from one register of elements to the next */
};

/* A row of an operand. If the row has a single value, `repeated` is memory for copies of it. */
RVP_INLINE struct operand_reader reader_of(const int8_t *row, int step, rvp_word *repeated)
{
    if (step != 0) {
        return (struct operand_reader){row, RVP_WORD_BYTES};
    }
    *repeated = rvp_splat8(*row);
    return (struct operand_reader){(const int8_t *)repeated, 0};
}
