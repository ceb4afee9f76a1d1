/* Shared by the depthwise 3x3 kernels: the sum of a window, on int8 values.
 *
 * Two products are added in int16 before they are widened. Two of -128 * -128 would not fit. The descriptor checks that the two
 * weights are never both -128.
 */
#pragma once

#include <stddef.h>

#include "depthwise.h"

/* A column of a window: 16 lanes of each of its rows. */
struct column {
    int8x16_t r0, r1, r2;
};

struct weights {
    struct column c0, c1, c2;
};

struct sums {
    int32x4_t a, b, c, d;
};

NEON_INLINE struct sums add_wide(struct sums s, int16x8_t low, int16x8_t high)
{
    return (struct sums){vaddw_s16(s.a, vget_low_s16(low)), vaddw_high_s16(s.b, low), vaddw_s16(s.c, vget_low_s16(high)),
                         vaddw_high_s16(s.d, high)};
}

NEON_INLINE struct sums add_pair(struct sums s, int8x16_t x0, int8x16_t w0, int8x16_t x1, int8x16_t w1)
{
    const int16x8_t low = vmlal_s8(vmull_s8(vget_low_s8(x0), vget_low_s8(w0)), vget_low_s8(x1), vget_low_s8(w1));
    const int16x8_t high = vmlal_high_s8(vmull_high_s8(x0, w0), x1, w1);
    return add_wide(s, low, high);
}

/* Adds all products of a window. */
NEON_INLINE struct sums add_window(struct sums s, struct column c0, struct column c1, struct column c2, struct weights w)
{
    s = add_pair(s, c0.r0, w.c0.r0, c0.r1, w.c0.r1);
    s = add_pair(s, c0.r2, w.c0.r2, c1.r0, w.c1.r0);
    s = add_pair(s, c1.r1, w.c1.r1, c1.r2, w.c1.r2);
    s = add_pair(s, c2.r0, w.c2.r0, c2.r1, w.c2.r1);
    return add_wide(s, vmull_s8(vget_low_s8(c2.r2), vget_low_s8(w.c2.r2)), vmull_high_s8(c2.r2, w.c2.r2));
}

/* Row iy of the image, or the input's zero point with no step from a column to the next. */
NEON_INLINE const uint8_t *row_of(const uint8_t *x, int32_t iy, const struct neon_depthwise *g, ptrdiff_t *step)
{
    const int outside = iy < 0 || iy >= g->height;
    *step = outside ? 0 : g->pixel;
    return outside ? g->fill : x + (ptrdiff_t)iy * g->width * g->pixel;
}
