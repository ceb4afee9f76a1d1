/* Depthwise 3x3, row by row: the lines are loaded here, depthwise3x3.S computes. */
#include "depthwise_turns.h"

MVE_INLINE void depthwise3x3(const void *x, const int32_t *constants, void *y, int32_t channels, int8_t *lines,
                             const int32_t *fields, mve_row3x3 *row)
{
    const struct mve_depthwise *const d = (const struct mve_depthwise *)fields;
    struct window_lines w = {.span = 3, .next = -d->top, .line = 0};
    uint8_t *to = y;
    for (int32_t oy = 0; oy < d->out_height; oy++) {
        const int32_t first = load_lines(lines, &w, x, oy, d, channels);
        int8_t *const top = lines + first * d->image.pitch;
        int8_t *const middle = first == 2 ? lines : top + d->image.pitch;
        int8_t *const bottom = first == 0 ? middle + d->image.pitch : lines + (first - 1) * d->image.pitch;
        row(to, top, middle, bottom, constants, channels, d);
        to += d->out_width * d->image.pixel;
    }
}

/* One function for each row function, so that only what a network needs is linked. */
#define MVE_DEPTHWISE3X3(variant)                                                                                     \
    void mve_depthwise3x3_##variant(const void *x, const int32_t *constants, void *y, int32_t channels, int8_t *lines, \
                                    const int32_t *fields)                                                            \
    {                                                                                                                 \
        depthwise3x3(x, constants, y, channels, lines, fields, mve_row3x3_##variant);                                 \
    }

MVE_DEPTHWISE3X3(exact_s1)
MVE_DEPTHWISE3X3(exact_s2)
MVE_DEPTHWISE3X3(lowered_s1)
MVE_DEPTHWISE3X3(lowered_s2)
MVE_DEPTHWISE3X3(exact_s1_clipped)
MVE_DEPTHWISE3X3(exact_s2_clipped)
MVE_DEPTHWISE3X3(lowered_s1_clipped)
MVE_DEPTHWISE3X3(lowered_s2_clipped)
