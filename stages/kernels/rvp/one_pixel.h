/* Convolution whose output is one pixel: a row of the image times all units of a group of channels, group by group. */
#ifndef FIRMLINE_RVP_ONE_PIXEL_H
#define FIRMLINE_RVP_ONE_PIXEL_H

#include <stdint.h>

struct rvp_one_pixel {
    int32_t start;               /* bytes from the image to the first run of the window */
    int32_t rows, row_step;      /* of the window; bytes from one to the next */
    int32_t taps, tap_step;      /* runs of a row, likewise */
    int32_t bytes;               /* of a run */
    int32_t products, step;      /* products of a row and weights; bytes from the runs of one to those of the next */
    int32_t units, steps;        /* of a product: outputs, registers of its row */
    int32_t clip, weight_zero_point;
};

/* One image, int8 or uint8; for each product weights and params as in dot_rows.S. `scratch` holds a row of whole registers and
 * behind it a byte for each unit of a product, layer is a struct rvp_one_pixel.
 */
typedef void rvp_one_pixel_kernel(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                                  const int32_t *layer);

rvp_one_pixel_kernel rvp_one_pixel_s8, rvp_one_pixel_u8;
/* Rounding once. */
rvp_one_pixel_kernel rvp_one_pixel_s8s, rvp_one_pixel_u8s;

#endif
