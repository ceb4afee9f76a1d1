/* Lines of 16 channels in scratch, which a depthwise convolution slides its windows over.
 *
 * A line is a row of the padded image: [columns][16] as int8, with what is outside of the image filled in. There are as many lines as
 * a window spans rows; row r of the padded image is in line r % span.
 */
#ifndef FIRMLINE_MVE_DEPTHWISE_LINES_H
#define FIRMLINE_MVE_DEPTHWISE_LINES_H

#include "bytes.h"
#include "depthwise.h"

enum { GROUP = 16 };

/* Which rows are in the lines: `next` is the row of the image that is loaded next, into line `line`. */
struct window_lines {
    int32_t span, next, line;
};

/* `count` > 0 pixels of `channels` channels, each xored with flip. */
MVE_INLINE void load_pixels(int8_t *line, const uint8_t *from, int32_t count, int32_t pixel, int32_t channels, uint8x16_t flip)
{
    uint8x16_t bytes;
    __asm__ volatile("vctp.8 %[channels]\n"
                     "dls lr, %[count]\n"
                     "1: vpst\n"
                     "vldrbt.8 %q[bytes], [%[from]]\n"
                     "veor %q[bytes], %q[bytes], %q[flip]\n"
                     "vstrb.8 %q[bytes], [%[line]], #16\n"
                     "add %[from], %[from], %[pixel]\n"
                     "le lr, 1b\n"
                     : [line] "+r"(line), [from] "+r"(from), [bytes] "=&w"(bytes)
                     : [count] "r"(count), [pixel] "r"(pixel), [channels] "r"(channels), [flip] "w"(flip)
                     : "lr", "p0", "memory");
}

/* Row `row` of the image, which may lie outside of it. */
MVE_INLINE void load_line(int8_t *line, const uint8_t *image, int32_t row, const struct mve_depthwise *d, int32_t channels)
{
    const uint8x16_t fill = vdupq_n_u8((uint8_t)d->fill);
    if (row < 0 || row >= d->height) {
        (void)mve_set((uint8_t *)line, d->pitch, fill);
        return;
    }
    const int32_t left = d->left, room = d->pitch / GROUP - left;
    const int32_t columns = d->width < room ? d->width : room;
    (void)mve_set((uint8_t *)line, left * GROUP, fill);
    line += left * GROUP;
    load_pixels(line, image + row * d->width * d->pixel, columns, d->pixel, channels, vdupq_n_u8((uint8_t)d->flip));
    (void)mve_set((uint8_t *)(line + columns * GROUP), (room - columns) * GROUP, fill);
}

/* Loads what the windows of output row `oy` need and is not there yet; returns the line of their first row. */
MVE_INLINE int32_t load_lines(int8_t *lines, struct window_lines *w, const uint8_t *image, int32_t oy,
                              const struct mve_depthwise *d, int32_t channels)
{
    const int32_t start = oy * d->stride_y, end = start - d->top + w->span;
    if (w->next < start - d->top) { /* rows between windows */
        w->next = start - d->top;
        w->line = start % w->span;
    }
    for (; w->next < end; w->next++) {
        load_line(lines + w->line * d->pitch, image, w->next, d, channels);
        w->line = w->line + 1 == w->span ? 0 : w->line + 1;
    }
    return start % w->span;
}

#endif
