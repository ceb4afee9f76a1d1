/* Copies the pixels of a group of channels into a plane of registers, and results to the image. */
#pragma once

#include "depthwise_pixels.h"
#include "depthwise_planes.h"

RVP_INLINE int smaller(int a, int b)
{
    return a < b ? a : b;
}

RVP_INLINE int larger(int a, int b)
{
    return a > b ? a : b;
}

/* The channels that fill a register if each is repeated twice. */
RVP_INLINE rvp_word load_twice(const uint8_t *p)
{
    rvp_word x = rvp_pkbb16(p[1], p[0]);
    if (RVP_LANES == 2) {
        x = rvp_pack(x, rvp_pkbb16(p[3], p[2]));
    }
    return x | x << 8;
}

/* The same if each is repeated four times. */
RVP_INLINE rvp_word load_four_times(const uint8_t *p)
{
    return (RVP_LANES == 2 ? rvp_pack(p[0], p[1]) : p[0]) * 0x01010101u;
}

/* Rows of pixels to copy into a plane. Steps are bytes; a row has `columns` pixels. */
struct moved {
    const int8_t *from;
    int8_t *to;
    intptr_t from_step, to_step, pixel_step;
    int rows, columns;
};

RVP_INLINE void move(const struct moved *m, const struct pixels *v, enum how how, int multiplier, int lane)
{
    const int8_t *row = m->from;
    int8_t *line = m->to;
    for (int rows = m->rows; rows > 0; rows--) {
        const int8_t *from = row;
        int8_t *to = line;
        for (int count = m->columns; count > 0; count--) {
            rvp_word x;
            if (multiplier == 2) {
                x = load_twice((const uint8_t *)from);
            } else if (multiplier == 4) {
                x = load_four_times((const uint8_t *)from);
            } else {
                x = load_pixel(from, v, how);
            }
            x ^= v->flip;
            if (lane) {
                rvp_store_lane(to, x);
            } else {
                rvp_store(to, x);
            }
            from += m->pixel_step;
            to += W;
        }
        row += m->from_step;
        line += m->to_step;
    }
}

/* Pixels that are registers, as they are. */
static void move_registers(const struct moved *m)
{
    const int8_t *row = m->from;
    int8_t *line = m->to;
    for (int rows = m->rows; rows > 0; rows--) {
        const int8_t *from = row;
        int8_t *to = line;
        int count = m->columns;
        for (; count >= 4; count -= 4) {
            const int8_t *const second = from + m->pixel_step, *const third = second + m->pixel_step;
            const int8_t *const fourth = third + m->pixel_step;
            const rvp_word a = rvp_load(from), b = rvp_load(second), c = rvp_load(third), d = rvp_load(fourth);
            from = fourth + m->pixel_step;
            rvp_store(to, a);
            rvp_store(to + W, b);
            rvp_store(to + 2 * W, c);
            rvp_store(to + 3 * W, d);
            to += 4 * W;
        }
        for (; count > 0; count--) {
            rvp_store(to, rvp_load(from));
            from += m->pixel_step;
            to += W;
        }
        row += m->from_step;
        line += m->to_step;
    }
}

static void move_pixels(const struct moved *m, const struct pixels *v, int multiplier)
{
    const int fills = v->bytes == W;
    if (v->how == WHOLE && v->flip == 0) {
        move_registers(m);
    } else if (v->how == WHOLE) {
        move(m, v, WHOLE, 1, 0);
    } else if (RVP_LANES == 2 && v->how == LANES) {
        move(m, v, LANES, 1, 0);
    } else if (v->how == REPEATED && fills && multiplier == 2) {
        move(m, v, REPEATED, 2, 0);
    } else if (v->how == REPEATED && fills && multiplier == 4) {
        move(m, v, REPEATED, 4, 0);
    } else if (v->how == REPEATED) {
        move(m, v, REPEATED, 1, 0);
    } else if (v->how == ONE_REPEATED) {
        move(m, v, ONE_REPEATED, 1, 0);
    } else if (v->bytes < 4) {
        move(m, v, FEW, 1, 0);
    } else {
        move(m, v, BYTES, 1, 0);
    }
}

/* The same for up to four channels, into one lane of the registers. */
static void move_lanes(const struct moved *m, const struct pixels *v)
{
    if (v->how == LANES) {
        move(m, v, LANES, 1, 1);
    } else if (v->how == REPEATED) {
        move(m, v, REPEATED, 1, 1);
    } else if (v->how == ONE_REPEATED) {
        move(m, v, ONE_REPEATED, 1, 1);
    } else if (v->bytes < 4) {
        move(m, v, FEW, 1, 1);
    } else {
        move(m, v, BYTES, 1, 1);
    }
}

/* A part of the plane: `lines` rows, the first of which is row `first_row` of the image; so many columns of each phase, the first
 * `left` before the image's; both lanes of a register or one.
 */
struct part {
    int first_row, lines;
    int left, columns;
    enum { BOTH, LOWER, UPPER } lane;
};

/* The part of the image in it. */
static void bring_plane(int8_t *plane, const int8_t *image, const struct part *p, const struct rvp_depthwise_planes *g,
                        const struct pixels *v)
{
    const int stride = g->column_stride, line_bytes = g->phases * g->phase_columns * W;
    const int above = larger(-p->first_row, 0), below = smaller(p->lines, g->rows - p->first_row);
    for (int phase = 0; phase < g->phases; phase++) {
        const int first = phase - p->left; /* column of the image; negative before the image */
        const int begin = first < 0 ? (stride - 1 - first) / stride : 0;
        const int end = smaller(p->columns, (g->columns - first + stride - 1) / stride);
        const int column = (phase * g->phase_columns + begin) * W + (p->lane == UPPER ? 4 : 0);
        const struct moved m = {
            .from = image + (p->first_row + above) * g->row_step + (first + begin * stride) * g->column_step,
            .to = plane + above * line_bytes + column,
            .from_step = g->row_step,
            .to_step = line_bytes,
            .pixel_step = stride * g->column_step,
            .rows = below - above,
            .columns = end - begin,
        };
        if (RVP_LANES == 2 && p->lane != BOTH) {
            move_lanes(&m, v);
        } else {
            move_pixels(&m, v, g->multiplier);
        }
    }
}

static void fill_plane(int8_t *plane, int registers, rvp_word value)
{
    for (; registers >= 4; registers -= 4) {
        rvp_store(plane, value);
        rvp_store(plane + W, value);
        rvp_store(plane + 2 * W, value);
        rvp_store(plane + 3 * W, value);
        plane += 4 * W;
    }
    for (; registers > 0; registers--) {
        rvp_store(plane, value);
        plane += W;
    }
}

RVP_INLINE void write(int8_t *to, const int8_t *results, int step, int count, const struct pixels *v, int shift, enum how how)
{
    for (; count > 0; count--) {
        store_pixel(to, rvp_load(results) >> shift, v, how);
        results += W;
        to += step;
    }
}

/* Copies results from their row to pixels that are not whole registers. Up to four channels are in lane `lane`. */
static void write_row(int8_t *to, const int8_t *results, int step, int count, const struct pixels *v, int lane)
{
    if (RVP_LANES == 2 && v->how == LANES && v->bytes == W) {
        write(to, results, step, count, v, 0, LANES);
    } else if (RVP_LANES == 2 && v->how == LANES) {
        for (; count > 0; count--) {
            rvp_store_lane(to, rvp_load(results) >> (lane ? W * 4 : 0));
            results += W;
            to += step;
        }
    } else if (v->bytes < W) {
        write(to, results, step, count, v, lane ? W * 4 : 0, FEW);
    } else {
        write(to, results, step, count, v, 0, BYTES);
    }
}
