/* Depthwise convolution by lanes.S and quads.S. They read the image in place, or bands of padded rows in scratch. */
#include "lanes.h"
#include "depthwise_lines.h"

/* `count` bytes of the image as int8; returns the end of what was written. */
MVE_INLINE uint8_t *load_bytes(uint8_t *to, const uint8_t *from, int32_t count, const struct mve_image *d)
{
    return d->flip ? mve_copy_flipped(to, from, count, vdupq_n_u8((uint8_t)d->flip)) : mve_copy(to, from, count);
}

/* `count` rows of the image from `row` on, all their channels; some may lie outside of it. Lines are as long as rows. */
MVE_INLINE void load_rows(uint8_t *line, const uint8_t *image, int32_t row, int32_t count, const struct mve_image *d)
{
    const uint8x16_t fill = vdupq_n_u8((uint8_t)d->fill);
    const int32_t end = row + count, first = row < 0 ? 0 : row, behind = end < d->height ? end : d->height;
    if (first < behind) {
        line = mve_set(line, (first - row) * d->pitch, fill);
        line = load_bytes(line, image + first * d->pitch, (behind - first) * d->pitch, d);
        row = behind;
    }
    (void)mve_set(line, (end - row) * d->pitch, fill);
}

/* Row `row` of the image, all its channels, which may lie outside of it. */
MVE_INLINE void load_row(uint8_t *line, const uint8_t *image, int32_t row, const struct mve_image *d)
{
    const uint8x16_t fill = vdupq_n_u8((uint8_t)d->fill);
    if ((uint32_t)row >= (uint32_t)d->height) {
        (void)mve_set(line, d->pitch, fill);
        return;
    }
    const int32_t left = d->left * d->pixel, all = d->width * d->pixel, room = d->pitch - left;
    const int32_t bytes = all < room ? all : room;
    line = load_bytes(mve_set(line, left, fill), image + row * all, bytes, d);
    (void)mve_set(line, room - bytes, fill);
}

/* All outputs of `channels` channels, from channel `first` of the lines on, `band` rows at a time. Lines that the next band needs too
 * are moved to the start. */
static void in_bands(uint8_t *y, const uint8_t *image, const int32_t *constants, const int32_t *offsets, int32_t channels,
                     int32_t first, int8_t *lines, const struct mve_lanes *d, mve_lanes_rows *rows)
{
    const int32_t pitch = d->image.pitch;
    int32_t row = -d->top, of_window = 0; /* the next row of the image to load, and the next row of a window, if rows between windows are skipped */
    int32_t kept = 0;                     /* lines of the band before */
    for (int32_t oy = 0; oy < d->rows; oy += d->band) {
        const int32_t count = d->band < d->rows - oy ? d->band : d->rows - oy;
        const int32_t needed = (count - 1) * d->lines_y + d->span;
        if (oy) {
            (void)mve_copy((uint8_t *)lines, (const uint8_t *)lines + d->band * d->lines_y * pitch, kept * pitch);
        }
        if (d->in_rows) {
            load_rows((uint8_t *)lines + kept * pitch, image, row, needed - kept, &d->image);
            row += needed - kept;
        } else {
            for (int32_t i = kept; i < needed; i++) {
                if (d->by_group) {
                    load_line(lines + i * pitch, image, row, &d->image, channels);
                } else {
                    load_row((uint8_t *)lines + i * pitch, image, row, &d->image);
                }
                of_window++;
                row++;
                if (of_window == d->span) {
                    row += d->left_out;
                    of_window = 0;
                }
            }
        }
        kept = d->span - d->lines_y;
        rows(y, lines + first, constants, offsets, count, channels, d);
        y += count * d->columns * d->y_step;
    }
}

/* Groups of 16 channels one by one, up to 16 channels otherwise. */
static void by_group(uint8_t *y, const uint8_t *image, const int32_t *constants, const int32_t *offsets, int32_t channels,
                     int8_t *lines, const struct mve_lanes *d, mve_lanes_rows *rows)
{
    const int32_t most = channels < GROUP ? channels : GROUP;
    for (;;) {
        in_bands(y, image, constants, offsets, most, 0, lines, d, rows);
        channels -= GROUP;
        if (channels <= 0) {
            return;
        }
        const int32_t step = channels < GROUP ? channels : GROUP; /* the last group ends with the channels */
        image += step;
        y += step;
        constants += d->group_bytes / 4;
    }
}

static void depthwise(const void *x, const int32_t *constants, void *y, const int32_t *offsets, int32_t channels, int8_t *lines,
                      const int32_t *fields, mve_lanes_rows *rows)
{
    const struct mve_lanes *const d = (const struct mve_lanes *)fields;
    if (d->band == 0) {
        rows(y, x, constants, offsets, d->rows, channels, d);
    } else if (d->by_group) {
        by_group(y, x, constants, offsets, channels, lines, d, rows);
    } else if (d->loaded) {
        rows(y, lines + d->first, constants, offsets, d->rows, channels, d);
    } else {
        in_bands(y, (const uint8_t *)x - d->first, constants, offsets, channels, d->first, lines, d, rows);
    }
}

/* One function for each function of rows, so that only what a network needs is linked. */
#define MVE_DEPTHWISE(name)                                                                                         \
    void mve_depthwise_##name(const void *x, const int32_t *constants, void *y, const int32_t *offsets, int32_t channels, \
                              int8_t *lines, const int32_t *fields)                                                 \
    {                                                                                                               \
        depthwise(x, constants, y, offsets, channels, lines, fields, mve_##name);                                   \
    }

#define MVE_DEPTHWISE_LANES(taps)            \
    MVE_DEPTHWISE(lanes_##taps##_exact)         \
    MVE_DEPTHWISE(lanes_##taps##_lowered)       \
    MVE_DEPTHWISE(lanes_##taps##_exact_clipped) \
    MVE_DEPTHWISE(lanes_##taps##_lowered_clipped)

#define MVE_DEPTHWISE_QUADS(taps)       \
    MVE_DEPTHWISE(quads_##taps##_exact) \
    MVE_DEPTHWISE(quads_##taps##_lowered)

MVE_DEPTHWISE_LANES(1)
MVE_DEPTHWISE_LANES(2)
MVE_DEPTHWISE_LANES(3)
MVE_DEPTHWISE_LANES(4)
MVE_DEPTHWISE_LANES(odd)
MVE_DEPTHWISE_LANES(even)
MVE_DEPTHWISE_QUADS(1)
MVE_DEPTHWISE_QUADS(2)
MVE_DEPTHWISE_QUADS(3)
MVE_DEPTHWISE_QUADS(4)
MVE_DEPTHWISE_QUADS(odd)
MVE_DEPTHWISE_QUADS(even)
