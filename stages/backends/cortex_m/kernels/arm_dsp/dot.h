/* Declarations of the functions in dot.S and rows.c; see there. */
#pragma once

#include <stdint.h>

typedef void arm_dsp_dot(const int8_t *x, const int32_t *blocks, void *out, int32_t units, const int32_t *fields,
                         int32_t offset);

arm_dsp_dot arm_dsp_dot_ab_double, arm_dsp_dot_ab_single, arm_dsp_dot_bytes_double, arm_dsp_dot_bytes_single;

/* Copies a row of `depth` activations as int8 (flip 0x80 for uint8), padded with zeros to a multiple of four, and the term of the weights'
 * zero point: offset[0] = -weight_zero_point * (sum of the row).
 */
void arm_dsp_copy_row(int8_t *row, int32_t *offset, const void *x, int32_t depth, int32_t flip, int32_t weight_zero_point);
