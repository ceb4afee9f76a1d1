/* A ring of lines: one for each row that a window spans. Row r of the padded image is in line r % span. */
#pragma once

#include "depthwise.h"
#include "depthwise_lines.h"

/* Which rows are in the lines: `next` is the row of the image that is loaded next, into line `line`. */
struct window_lines {
    int32_t span, next, line;
};

/* Loads the rows that the windows of output row `oy` need and that are not loaded yet. Returns the line of their first row. */
MVE_INLINE int32_t load_lines(int8_t *lines, struct window_lines *w, const uint8_t *image, int32_t oy,
                              const struct mve_depthwise *d, int32_t channels)
{
    const int32_t start = oy * d->stride_y, end = start - d->top + w->span;
    if (w->next < start - d->top) { /* rows between windows */
        w->next = start - d->top;
        w->line = start % w->span;
    }
    for (; w->next < end; w->next++) {
        load_line(lines + w->line * d->image.pitch, image, w->next, &d->image, channels);
        w->line = w->line + 1 == w->span ? 0 : w->line + 1;
    }
    return start % w->span;
}
