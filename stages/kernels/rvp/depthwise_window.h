/* Depthwise convolution with windows of any height and up to five columns on NHWC images, a group of 4 * RVP_LANES
 * channels at a time, through the strips of depthwise_strips.h.
 */
#ifndef FIRMLINE_RVP_DEPTHWISE_WINDOW_H
#define FIRMLINE_RVP_DEPTHWISE_WINDOW_H

#include "depthwise.h"

struct rvp_depthwise_window {
    struct rvp_depthwise_geometry image;
    int32_t kernel_rows, kernel_columns;
    int32_t row_stride;
    int32_t addends; /* 2 where weights are sums of two int8 */
};

/* One group of channels; x and out point to its first channel, params are as in depthwise_window.c, window is a struct
 * rvp_depthwise_window. The numbers are the stride along the columns and the most columns that the window may have, u is
 * for uint8. channels: 0 for a whole group whose pixels are aligned registers, otherwise how many the group has.
 * scratch: see scratch_bytes of depthwise_window.py.
 */
typedef void rvp_depthwise_any(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *window,
                               int channels);

rvp_depthwise_any rvp_depthwise_s1_k2, rvp_depthwise_s1_k3, rvp_depthwise_s1_k5;
rvp_depthwise_any rvp_depthwise_s2_k2, rvp_depthwise_s2_k3, rvp_depthwise_s2_k5;
rvp_depthwise_any rvp_depthwise_s1_k2u, rvp_depthwise_s1_k3u, rvp_depthwise_s1_k5u;
rvp_depthwise_any rvp_depthwise_s2_k2u, rvp_depthwise_s2_k3u, rvp_depthwise_s2_k5u;

#endif
