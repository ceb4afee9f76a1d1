/* Panels: the activations of up to 5 output pixels as gemm_s8.S reads them.
 *
 *   panel[chunk][row] is one register: the row's activations 4 * chunk ... 4 * chunk + 3, in every 32-bit lane.
 *   If the weights have a zero point, panel[chunks][row] is the row's offset: -weight_zero_point * (sum of the row), repeated in
 *   every lane.
 *
 * A row is a sequence of runs: consecutive bytes of the image, such as a row of a window. Each run starts a new chunk. The last
 * chunk of a run may end with arbitrary bytes. They have no effect, because the weights there are the zero point. uint8 activations
 * become int8 by flipping the top bit.
 */
#pragma once

#include <stdint.h>

/* Positions of the windows; all numbers are elements. Elements outside the image are `fill` (the input's zero point). Pixels are
 * `pixel_step` apart, because a product may use only some channels of a pixel.
 */
struct rvp_geometry {
    int32_t height, width, channels;
    int32_t kernel_y, kernel_x;
    int32_t stride_y, stride_x;
    int32_t dilation_y, dilation_x;
    int32_t top, left;
    int32_t out_width;
    int32_t fill;
    int32_t pixel_step;
};

/* Both fill `panels` panels of `rows` rows. `flip` is 0x80 for uint8, else 0.
 *
 * Rows of a matrix: row r is at x + r * stride, `depth` bytes.
 */
void rvp_panel_rows(int32_t *panel, const void *x, int rows, int panels, int depth, int stride, int flip,
                    int weight_zero_point);

/* Windows of an NHWC image: row r is the window of output pixel `first + r`, counted along the rows of the output. */
void rvp_panel_windows(int32_t *panel, const void *image, int first, int rows, int panels, const int32_t *geometry,
                       int flip, int weight_zero_point);
