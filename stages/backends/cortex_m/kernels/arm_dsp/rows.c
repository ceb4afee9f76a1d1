#include "dot.h"

void arm_dsp_copy_row(int8_t *row, int32_t *offset, const void *x, int32_t depth, int32_t flip, int32_t weight_zero_point)
{
    const uint8_t *from = x;
    int32_t sum = 0, k = 0;
    for (; k < depth; k++) {
        row[k] = (int8_t)(from[k] ^ flip);
        sum += row[k];
    }
    for (; (k & 3) != 0; k++) {
        row[k] = 0;
    }
    *offset = -weight_zero_point * sum;
}
