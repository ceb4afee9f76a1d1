/* Depthwise 3x3 convolution: one channel and one row of windows at a time, with all weights in registers.
 *
 * Consecutive windows share columns. Each column is loaded once and used for all windows that contain it:
 *
 *      | v0 |             stride 1: the last column of one window, the middle column of the next, the first of the one after
 *      | v1 | column      stride 2: the middle column of one window; or the last column of one and the first of the next
 *      | v2 |
 *
 * Taps outside the image are the input's zero point, whose term is in the bias.
 */
#include "depthwise3x3.h"

#include "channels.h"
#include "elements.h"
#include "rectified.h"
#include "scaling.h"

enum { TAPS = 3 };

struct column {
    int32_t a, b, c;
};

/* The columns of a line: position and number of those inside the image. Other columns are the zero point. */
struct columns {
    const uint8_t *x;
    int32_t down, step; /* bytes to the next element of a column, to the next column */
    int32_t before, size, zero_point;
};

INLINE struct column load_column(const uint8_t *x, int32_t down, int is_unsigned)
{
    const uint8_t *const middle = x + down;
    return (struct column){load(x, is_unsigned), load(middle, is_unsigned), load(middle + down, is_unsigned)};
}

INLINE struct column column_at(const struct columns *l, int32_t number, int is_unsigned)
{
    const int32_t at = number - l->before;
    if (at < 0 || at >= l->size) {
        return (struct column){l->zero_point, l->zero_point, l->zero_point};
    }
    return load_column(l->x + at * l->step, l->down, is_unsigned);
}

/* The weights of a column, top to bottom. */
struct weights {
    int32_t begin[TAPS], middle[TAPS], end[TAPS];
};

/* How sums become results, which are y_step bytes apart. */
struct results {
    int32_t bias, multiplier, shift, zero_point, low, high;
    int32_t y_step, count;
    int32_t floor;
    struct rectifier rectifier;
};

#if UINTPTR_MAX > UINT32_MAX

/* The sums of three windows share a register, and what an element adds to all of them is one product:
 *
 *      bits 44 to 63: the window's last column     22 to 43: its middle column     0 to 21: its first column
 *
 * The next column moves them up. Each sum begins with -floor, so that it is never negative and borrows nothing from the sums above.
 * With a step of two there are only two sums: the last and the first column.
 */
enum { FIELD = 22, LAST = 2 * FIELD };

struct packed {
    uint64_t ends[TAPS], middle[TAPS];
};

struct sums {
    uint64_t fields;
};

INLINE struct packed packed_of(const struct weights *w, int stride)
{
    struct packed p;
    for (int i = 0; i < TAPS; i++) {
        p.middle[i] = (uint64_t)(int64_t)w->middle[i];
        p.ends[i] = (uint64_t)(int64_t)w->begin[i] + ((uint64_t)(int64_t)w->end[i] << LAST);
        p.ends[i] += stride == 1 ? p.middle[i] << FIELD : 0;
    }
    return p;
}

INLINE uint64_t products(struct column v, const uint64_t *w)
{
    return (uint64_t)(int64_t)v.a * w[0] + (uint64_t)(int64_t)v.b * w[1] + (uint64_t)(int64_t)v.c * w[2];
}

INLINE void add_middle(struct sums *s, struct column v, const struct packed *w)
{
    s->fields += products(v, w->middle);
}

/* Adds a column that ends a window, and begins one; returns the sum of that which ends, with the bias. */
INLINE int32_t add_ends(struct sums *s, struct column v, const struct packed *w, const struct results *o, int stride)
{
    s->fields = (s->fields << (stride * FIELD)) - (uint64_t)(int64_t)o->floor + products(v, w->ends);
    return (int32_t)((uint32_t)(s->fields >> LAST) + (uint32_t)o->bias);
}

#else

/* The sums of the windows with one column so far, and with two. */
struct sums {
    uint32_t one, two;
};

struct packed {
    struct weights w;
};

INLINE struct packed packed_of(const struct weights *w, int stride)
{
    (void)stride;
    return (struct packed){*w};
}

INLINE uint32_t products(struct column v, const int32_t *w)
{
    return (uint32_t)(v.a * w[0]) + (uint32_t)(v.b * w[1]) + (uint32_t)(v.c * w[2]);
}

INLINE void add_middle(struct sums *s, struct column v, const struct packed *p)
{
    s->two = s->one + products(v, p->w.middle);
}

/* Adds a column that ends a window, and begins one; returns the sum of that which ends, with the bias. */
INLINE int32_t add_ends(struct sums *s, struct column v, const struct packed *p, const struct results *o, int stride)
{
    const uint32_t sum = s->two + products(v, p->w.end);
    if (stride == 1) {
        add_middle(s, v, p);
    }
    s->one = (uint32_t)o->bias + products(v, p->w.begin);
    return (int32_t)sum;
}

#endif

/* Not inlined: channels that are scaled up are rare, and their code should not take registers of the loops. */
static __attribute__((noinline)) int32_t scaled_up(int32_t sum, const struct results *o)
{
    return fl_add_wrapping(fl_requantize_double(sum, o->multiplier, o->shift), o->zero_point);
}

INLINE uint8_t finish(int32_t sum, const struct results *o, const struct results *where, int is_rectified)
{
    if (is_rectified) {
        return (uint8_t)clamped(rectified(sum, &o->rectifier), o->low, o->high);
    }
    const int32_t y = __builtin_expect(o->shift < 0, 1) ? scaled_down(sum, o->multiplier, o->shift) + o->zero_point
                                                        : scaled_up(sum, where);
    return (uint8_t)fl_clamp(y, o->low, o->high);
}

INLINE void line(const struct columns *l, const struct weights *weights, const struct results *to, uint8_t *y,
                 int stride, int is_unsigned, int is_rectified)
{
    const struct results o = *to; /* local copy: y may alias it */
    const struct packed w = packed_of(weights, stride);
    const int32_t down = l->down, step = l->step;
    const int32_t inside = fl_clamp((l->size + l->before - TAPS + stride) / stride, 0, o.count);
    const uint8_t *x = l->x + (TAPS - stride - l->before) * step;
    struct sums s = {0};
    add_ends(&s, column_at(l, 0, is_unsigned), &w, &o, stride);
    if (stride == 1) {
        add_ends(&s, column_at(l, 1, is_unsigned), &w, &o, stride);
    }
    for (int32_t n = inside; n > 0; n--) {
        if (stride == 2) {
            add_middle(&s, load_column(x, down, is_unsigned), &w);
            x += step;
        }
        *y = finish(add_ends(&s, load_column(x, down, is_unsigned), &w, &o, stride), &o, to, is_rectified);
        x += step;
        y += o.y_step;
    }
    for (int32_t n = inside; n < o.count; n++) {
        if (stride == 2) {
            add_middle(&s, column_at(l, n * 2 + 1, is_unsigned), &w);
        }
        *y = finish(add_ends(&s, column_at(l, n * stride + 2, is_unsigned), &w, &o, stride), &o, to, is_rectified);
        y += o.y_step;
    }
}

/* If the compiler moved loads up, they would need the registers of weights. */
#define LINE(name, stride, is_unsigned, is_rectified)                                                                  \
    static __attribute__((noinline, optimize("no-schedule-insns"))) void name(                                        \
        const struct columns *l, const struct weights *w, const struct results *o, uint8_t *y)                         \
    {                                                                                                                  \
        line(l, w, o, y, stride, is_unsigned, is_rectified);                                                           \
    }

LINE(line_s8, 1, 0, 0)
LINE(line_u8, 1, 1, 0)
LINE(line2_s8, 2, 0, 0)
LINE(line2_u8, 2, 1, 0)
LINE(rectified_line_s8, 1, 0, 1)
LINE(rectified_line_u8, 1, 1, 1)
LINE(rectified_line2_s8, 2, 0, 1)
LINE(rectified_line2_u8, 2, 1, 1)

typedef void one_line(const struct columns *l, const struct weights *w, const struct results *o, uint8_t *y);

/* The weights of columns that begin `moved` elements before their window, 0 for missing ones. Returns the sum of the weights without an
 * element.
 */
static int32_t place(int32_t *to, const int8_t *w, int32_t moved, int32_t zero_point)
{
    int32_t outside = 0;
    for (int32_t i = 0; i < TAPS; i++) {
        to[i] = 0;
    }
    for (int32_t i = 0; i < TAPS; i++) {
        const int32_t weight = w[i] - zero_point, at = i + moved;
        if (at >= 0 && at < TAPS) {
            to[at] = weight;
        } else {
            outside += weight;
        }
    }
    return outside;
}

/* One channel, line by line. Columns begin inside the image; weights for taps outside of it are 0. */
static void channel(const uint8_t *x, const int8_t *w, const int32_t *constants, uint8_t *y,
                    const struct riscv_depthwise3x3 *v, one_line *each)
{
    const struct riscv_side along = v->along, across = v->across;
    struct columns l = {x, across.x_step, along.x_step, along.before, along.size, v->input_zero_point};
    struct results o = {
        .multiplier = constants[FL_MULTIPLIER],
        .shift = constants[FL_SHIFT],
        .zero_point = v->zero_point,
        .low = v->low,
        .high = v->high,
        .y_step = along.y_step,
        .count = along.out,
        .floor = v->floor,
        .rectifier = rectifier_of(constants, v->zero_point),
    };
    struct weights placed;
    int32_t at = -across.before, moved = TAPS; /* does not occur */
    for (int32_t n = across.out; n > 0; n--) {
        const int32_t begin = fl_clamp(at, 0, across.size - TAPS);
        if (at - begin != moved) {
            moved = at - begin;
            const int32_t outside = place(placed.begin, w, moved, v->weight_zero_point) +
                                    place(placed.middle, w + TAPS, moved, v->weight_zero_point) +
                                    place(placed.end, w + 2 * TAPS, moved, v->weight_zero_point);
            o.bias = fl_add_wrapping(constants[FL_BIAS], outside * v->input_zero_point + v->floor);
        }
        l.x = x + begin * across.x_step;
        each(&l, &placed, &o, y);
        y += across.y_step;
        at += across.stride;
    }
}

static void image(const uint8_t *x, const int8_t *w, const int32_t *channels, uint8_t *y,
                  const struct riscv_depthwise3x3 *v, one_line *each)
{
    for (int32_t c = 0; c < v->channels; c += v->multiplier) {
        for (int32_t n = 0; n < v->multiplier; n++) {
            channel(x, w, channels, y, v, each);
            w += TAPS * TAPS;
            channels += FL_CHANNEL;
            y += v->y_channel;
        }
        x += v->x_channel;
    }
}

#define IMAGE(name, type, each)                                                                                        \
    void name(const type *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters)                \
    {                                                                                                                  \
        image((const uint8_t *)x, w, channels, y, parameters, each);                                                   \
    }

IMAGE(riscv_depthwise3x3_s8, int8_t, line_s8)
IMAGE(riscv_depthwise3x3_u8, uint8_t, line_u8)
IMAGE(riscv_depthwise3x3_stride2_s8, int8_t, line2_s8)
IMAGE(riscv_depthwise3x3_stride2_u8, uint8_t, line2_u8)
IMAGE(riscv_depthwise3x3_rectified_s8, int8_t, rectified_line_s8)
IMAGE(riscv_depthwise3x3_rectified_u8, uint8_t, rectified_line_u8)
IMAGE(riscv_depthwise3x3_stride2_rectified_s8, int8_t, rectified_line2_s8)
IMAGE(riscv_depthwise3x3_stride2_rectified_u8, uint8_t, rectified_line2_u8)
