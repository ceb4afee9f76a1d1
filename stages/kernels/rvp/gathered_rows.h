/* Rows of a matrix, or of runs of an image, times all units of their products: fully connected layers of several rows, and
 * convolutions whose output is one pixel, group by group. */
#ifndef FIRMLINE_RVP_GATHERED_ROWS_H
#define FIRMLINE_RVP_GATHERED_ROWS_H

#include <stdint.h>

struct rvp_gathered_rows {
    int32_t start;                   /* bytes from x to the first run */
    int32_t rows, row_step;          /* of a window; bytes from one to the next */
    int32_t taps, tap_step;          /* runs of a row, likewise */
    int32_t bytes;                   /* of a run */
    int32_t products, step;          /* products of a row and weights; bytes from the runs of one to those of the next */
    int32_t units, steps;            /* of a product: outputs, registers of its row */
    int32_t weight_step, param_step; /* from a product to the next: bytes of weights, int32 of params; 0 where they are shared */
    int32_t clip, weight_zero_point;
};

/* All products of one image or matrix, int8 or uint8; weights and params of each as in dot_rows.S. `scratch` holds a row of whole
 * registers and behind it a byte for each unit of a product, layer is a struct rvp_gathered_rows.
 */
typedef void rvp_gathered_rows_kernel(const void *x, const int8_t *weights, const int32_t *params, void *out,
                                      int8_t *scratch, const int32_t *layer);

rvp_gathered_rows_kernel rvp_gathered_rows_s8, rvp_gathered_rows_u8;
/* Rounding once. */
rvp_gathered_rows_kernel rvp_gathered_rows_s8s, rvp_gathered_rows_u8s;

#endif
