/* Rows of a matrix times all units: fully connected layers of several rows. */
#ifndef FIRMLINE_RVP_GATHERED_ROWS_H
#define FIRMLINE_RVP_GATHERED_ROWS_H

#include <stdint.h>

struct rvp_gathered_rows {
    int32_t rows, bytes;  /* of the matrix; of a row */
    int32_t units, steps; /* outputs of a row, registers of a row */
    int32_t clip, weight_zero_point;
};

/* All rows, int8 or uint8; weights and params as in dot_rows.S. `scratch` holds a row of whole registers, then a byte for each unit. layer
 * is a struct rvp_gathered_rows.
 */
typedef void rvp_gathered_rows_kernel(const void *x, const int8_t *weights, const int32_t *params, void *out,
                                      int8_t *scratch, const int32_t *layer);

rvp_gathered_rows_kernel rvp_gathered_rows_s8, rvp_gathered_rows_u8;
/* Rounding once. */
rvp_gathered_rows_kernel rvp_gathered_rows_s8s, rvp_gathered_rows_u8s;

#endif
