/* Six rows of x by a panel of w (gemm.c), for RISC-V of 64 bits. */
#pragma once

#include "panel_4.h"

#if defined(__riscv) && UINTPTR_MAX > UINT32_MAX

/* Three sums of 21 bits in one register, for few products:
 *
 *     x = x0 + x1 * 2^21 + x2 * 2^42         each k loads 14 bytes for 48 products
 *
 * SEGMENT products of two int8 are in (-2^20, 2^20]; after SEGMENT products the sums are separated and added up. They begin with
 * -1, so that they fit signed 21 bits. */
enum { SEGMENT = 64 };
static const uint64_t ONES = (uint64_t)1 << 42 | (uint64_t)1 << 21 | 1;

struct column {
    int32_t a, b, c, d, e, f; /* the sums of six rows */
};

struct columns {
    struct column c0, c1, c2, c3, c4, c5, c6, c7;
};

/* Six rows, which are `step` bytes apart. */
struct six {
    const int8_t *x;
    int64_t step;
    struct four upper;
    struct pair lower;
};

static void spread(uint64_t abc, uint64_t def, struct column *s)
{
    const uint64_t up = (uint64_t)1 << 20, middle = (uint64_t)1 << 41;
    s->a += 1 + (int32_t)((int64_t)(abc << 43) >> 43);
    s->b += 1 + (int32_t)((int64_t)((abc + up) << 22) >> 43);
    s->c += 1 + (int32_t)((int64_t)(abc + up + middle) >> 42);
    s->d += 1 + (int32_t)((int64_t)(def << 43) >> 43);
    s->e += 1 + (int32_t)((int64_t)((def + up) << 22) >> 43);
    s->f += 1 + (int32_t)((int64_t)(def + up + middle) >> 42);
}

UNSCHEDULED static void segment(const int8_t *x0, int64_t step, const int8_t *w, int32_t k, struct columns *s)
{
    const int8_t *x1 = x0 + step, *x2 = x1 + step, *x3 = x2 + step, *x4 = x3 + step, *x5 = x4 + step;
    const int8_t *const end = x0 + k;
    uint64_t a0 = -ONES, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
    uint64_t b0 = a0, b1 = a0, b2 = a0, b3 = a0, b4 = a0, b5 = a0, b6 = a0, b7 = a0;
#pragma GCC unroll 2
    while (x0 != end) {
        const uint64_t x = (uint64_t)(int64_t)*x0++ + ((uint64_t)(int64_t)*x1++ << 21) + ((uint64_t)(int64_t)*x2++ << 42);
        const uint64_t z = (uint64_t)(int64_t)*x3++ + ((uint64_t)(int64_t)*x4++ << 21) + ((uint64_t)(int64_t)*x5++ << 42);
        EACH_COLUMN(MULTIPLY_PAIR)
        w += FL_PANEL;
    }
#define SPREAD(j) spread(a##j, b##j, &s->c##j);
    EACH_COLUMN(SPREAD)
}

/* Column j of six rows. */
static void finish_6(const struct column *s, int32_t j, const struct six *r, const int32_t *channels,
                     const struct fl_gemm *e)
{
    const int32_t *channel = channels + j * FL_CHANNEL;
    const int32_t at = j * e->y_column;
    finish_4(s->a, s->b, s->c, s->d, j, &r->upper, channels, e);
    if (e->single_rounding || channel[FL_SHIFT] >= 0) {
        finish_1(s->e, j, &r->lower.a, channels, e);
        finish_1(s->f, j, &r->lower.b, channels, e);
        return;
    }
    const uint8_t y0 = narrowed(s->e, r->lower.a.sum, channel, e), y1 = narrowed(s->f, r->lower.b.sum, channel, e);
    r->lower.a.y[at] = y0;
    r->lower.b.y[at] = y1;
}

static void panel_6(const struct six *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    struct columns s = {0};
    const int8_t *x = r->x;
    for (; k > 0; k -= SEGMENT) {
        segment(x, r->step, w, k < SEGMENT ? k : SEGMENT, &s);
        x += SEGMENT;
        w += SEGMENT * FL_PANEL;
    }
#define FINISH_6(j) finish_6(&s.c##j, j, r, channels, e);
    EACH_COLUMN(FINISH_6)
}

#endif
