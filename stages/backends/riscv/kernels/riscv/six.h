/* Six rows: loads of their next elements, their sums, and the conversion of sums to results. */
#pragma once

#include "channels.h"
#include "elements.h"
#include "rectified.h"
#include "scaling.h"

enum { ROWS = 6 };

/* Prevents the compiler from moving loads up, or joining sums across branches: both would need the registers of sums. */
#define AS_WRITTEN                                                                                                     \
    __attribute__((noinline, optimize("no-schedule-insns", "no-code-hoisting", "no-tree-pre", "no-tree-reassoc",       \
                                      "no-crossjumping", "no-tree-ter")))

/* The sums of six rows. */
struct six {
    int32_t a, b, c, d, e, f;
};

/* Conversion of sums to results: number of rows, and distance of the next row's results. */
struct results {
    int32_t step, zero_point, low, high, rows;
};

INLINE uint8_t narrowed(int32_t sum, const int32_t *channel, const struct results *o)
{
    const intptr_t y = scaled_down(sum, channel[FL_MULTIPLIER], channel[FL_SHIFT]) + o->zero_point;
    return (uint8_t)clamped(y, o->low, o->high);
}

static uint8_t scaled(int32_t sum, const int32_t *channel, const struct results *o)
{
    const int32_t y = scaled_twice(sum, channel[FL_MULTIPLIER], channel[FL_SHIFT]);
    return (uint8_t)fl_clamp(fl_add_wrapping(y, o->zero_point), o->low, o->high);
}

/* A column of fewer than six rows, or of any number of rows without a ReLU. */
static __attribute__((noinline)) void finish_any(const struct six *s, const int32_t *channel, uint8_t *y,
                                                 const struct results *where)
{
    const struct results o = *where; /* local copies: y may alias them */
    const int32_t constants[FL_CHANNEL] = {0, channel[FL_MULTIPLIER], channel[FL_SHIFT]};
    const int32_t *sums = &s->a;
    if (constants[FL_SHIFT] >= 0 || o.rows < ROWS) {
        for (int32_t i = 0; i < o.rows; i++) {
            y[i * o.step] = scaled(sums[i], constants, &o);
        }
        return;
    }
#pragma GCC unroll 6
    for (int32_t i = 0; i < ROWS; i++) {
        *y = narrowed(sums[i], constants, &o);
        y += o.step;
    }
}

/* A column of six rows. */
INLINE void finish(const struct six *s, const int32_t *channel, uint8_t *y, const struct results *o, int32_t is_usual)
{
    if (!is_usual) {
        const struct six in_memory = *s;
        finish_any(&in_memory, channel, y, o);
        return;
    }
    const struct rectifier r = rectifier_of(channel, o->zero_point);
    const intptr_t low = o->low, high = o->high;
    const int32_t step = o->step;
    *y = (uint8_t)clamped(rectified(s->a, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->b, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->c, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->d, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->e, &r), low, high);
    y += step;
    *y = (uint8_t)clamped(rectified(s->f, &r), low, high);
}

/* The next elements of six rows. */
struct six_rows {
    const int8_t *a, *b, *c, *d, *e, *f;
};
