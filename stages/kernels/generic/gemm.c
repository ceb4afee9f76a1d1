/* y = requantize(bias + x * transpose(w - weight_zero_point)), the inner part of convolution and fully connected
 * layers.
 *
 * Rows of w come in panels of eight, element k of all eight side by side; what does not fill a panel comes row by row:
 *
 *      w0[0] w1[0] ... w7[0]  w0[1] w1[1] ... w7[1]  ...      w8[0] w8[1] ...  w9[0] w9[1] ...
 *      |--------------------- a panel ------------------|      |---- rows left over -----|
 */
#include "gemm.h"

#include "channels.h"
#include "scaling.h"

/* Functions that are there once on RISC-V, where blocks of four and six rows call them besides. */
#if defined(__riscv)
#define ONCE static __attribute__((noinline))
#else
#define ONCE static
#endif

/* One output byte; int8 and uint8 differ only in the bounds. `sum` is that of the row of x, for weights with a zero
 * point. */
static inline __attribute__((always_inline)) uint8_t output(int32_t dot, int32_t sum, const int32_t *channel,
                                                            const struct fl_gemm *e)
{
    const int32_t acc = fl_add_wrapping(channel[FL_BIAS], dot - e->weight_zero_point * sum);
    const int32_t scaled = e->single_rounding ? fl_requantize_single(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT])
                                              : scaled_twice(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT]);
    return (uint8_t)fl_clamp(fl_add_wrapping(scaled, e->zero_point), e->low, e->high);
}

/* A row of x, its sum, and where its results go. */
struct row {
    const int8_t *x;
    int32_t sum;
    uint8_t *y;
};

struct pair {
    struct row a, b;
};

/* Column j of one row. */
ONCE void finish_1(int32_t dot, int32_t j, const struct row *r, const int32_t *channels, const struct fl_gemm *e)
{
    r->y[j * e->y_column] = output(dot, r->sum, channels + j * FL_CHANNEL, e);
}

static int32_t sum_of(const int8_t *x, int32_t k)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < k; i++) {
        sum += x[i];
    }
    return sum;
}

static int32_t dot(const int8_t *x, const int8_t *w, int32_t k)
{
    int32_t acc = 0;
    for (int32_t i = 0; i < k; i++) {
        acc += x[i] * w[i];
    }
    return acc;
}

/* One row by a panel. */
ONCE void panel_1(const struct row *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    const int8_t *x = r->x;
    const int8_t *const end = x + k;
    int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    while (x != end) {
        const int32_t v = *x++;
        a0 += v * w[0];
        a1 += v * w[1];
        a2 += v * w[2];
        a3 += v * w[3];
        a4 += v * w[4];
        a5 += v * w[5];
        a6 += v * w[6];
        a7 += v * w[7];
        w += FL_PANEL;
    }
    finish_1(a0, 0, r, channels, e);
    finish_1(a1, 1, r, channels, e);
    finish_1(a2, 2, r, channels, e);
    finish_1(a3, 3, r, channels, e);
    finish_1(a4, 4, r, channels, e);
    finish_1(a5, 5, r, channels, e);
    finish_1(a6, 6, r, channels, e);
    finish_1(a7, 7, r, channels, e);
}

#if UINTPTR_MAX > UINT32_MAX

/* Column j of two rows. */
static void finish_2(int32_t dot_a, int32_t dot_b, int32_t j, const struct pair *r, const int32_t *channels,
                     const struct fl_gemm *e)
{
    const int32_t *channel = channels + j * FL_CHANNEL;
    const uint8_t a = output(dot_a, r->a.sum, channel, e);
    const uint8_t b = output(dot_b, r->b.sum, channel, e);
    r->a.y[j * e->y_column] = a;
    r->b.y[j * e->y_column] = b;
}

/* On 64-bit machines one multiplication serves two rows: with x = x0 + x1 * 2^32, x * w is both products, and a sum of
 * them holds both sums. The lower sum is the lower half; taking it away leaves the upper one, whatever it borrowed.
 *
 *              w0  w1  w2  w3  w4  w5  w6  w7
 *        x     a0  a1  a2  a3  a4  a5  a6  a7      each k loads 10 bytes for 16 products
 */
static void split(uint64_t sums, int32_t j, const struct pair *r, const int32_t *channels, const struct fl_gemm *e)
{
    const int32_t lower = (int32_t)(uint32_t)sums;
    const int32_t upper = (int32_t)(uint32_t)((sums - (uint64_t)(int64_t)lower) >> 32);
    finish_2(lower, upper, j, r, channels, e);
}

static void panel_2(const struct pair *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    const int8_t *x0 = r->a.x, *x1 = r->b.x;
    const int8_t *const end = x0 + k;
    uint64_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    while (x0 != end) {
        const uint64_t x = (uint64_t)(int64_t)*x0++ + ((uint64_t)(int64_t)*x1++ << 32);
        a0 += x * (uint64_t)(int64_t)w[0];
        a1 += x * (uint64_t)(int64_t)w[1];
        a2 += x * (uint64_t)(int64_t)w[2];
        a3 += x * (uint64_t)(int64_t)w[3];
        a4 += x * (uint64_t)(int64_t)w[4];
        a5 += x * (uint64_t)(int64_t)w[5];
        a6 += x * (uint64_t)(int64_t)w[6];
        a7 += x * (uint64_t)(int64_t)w[7];
        w += FL_PANEL;
    }
    split(a0, 0, r, channels, e);
    split(a1, 1, r, channels, e);
    split(a2, 2, r, channels, e);
    split(a3, 3, r, channels, e);
    split(a4, 4, r, channels, e);
    split(a5, 5, r, channels, e);
    split(a6, 6, r, channels, e);
    split(a7, 7, r, channels, e);
}

#elif defined(__riscv)

/* Four rows at a time are the rule, below. */
static void panel_2(const struct pair *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    panel_1(&r->a, w, k, channels, e);
    panel_1(&r->b, w, k, channels, e);
}

#else

/* Column j of two rows. */
static void finish_2(int32_t dot_a, int32_t dot_b, int32_t j, const struct pair *r, const int32_t *channels,
                     const struct fl_gemm *e)
{
    const int32_t *channel = channels + j * FL_CHANNEL;
    const uint8_t a = output(dot_a, r->a.sum, channel, e);
    const uint8_t b = output(dot_b, r->b.sum, channel, e);
    r->a.y[j * e->y_column] = a;
    r->b.y[j * e->y_column] = b;
}

/* On 32-bit machines half a panel at a time, as many sums as there are registers for:
 *
 *              w0   w1   w2   w3
 *        x0   a00  a01  a02  a03      each k loads 6 bytes for 8 products
 *        x1   a10  a11  a12  a13
 */
static void half(const struct pair *r, const int8_t *w, int32_t k, int32_t j, const int32_t *channels,
                 const struct fl_gemm *e)
{
    const int8_t *x0 = r->a.x, *x1 = r->b.x;
    const int8_t *const end = x0 + k;
    int32_t a00 = 0, a01 = 0, a02 = 0, a03 = 0;
    int32_t a10 = 0, a11 = 0, a12 = 0, a13 = 0;
    while (x0 != end) {
        const int32_t u = *x0++, v = *x1++;
        a00 += u * w[0];
        a10 += v * w[0];
        a01 += u * w[1];
        a11 += v * w[1];
        a02 += u * w[2];
        a12 += v * w[2];
        a03 += u * w[3];
        a13 += v * w[3];
        w += FL_PANEL;
    }
    finish_2(a00, a10, j, r, channels, e);
    finish_2(a01, a11, j + 1, r, channels, e);
    finish_2(a02, a12, j + 2, r, channels, e);
    finish_2(a03, a13, j + 3, r, channels, e);
}

static void panel_2(const struct pair *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    half(r, w, k, 0, channels, e);
    half(r, w + FL_PANEL / 2, k, FL_PANEL / 2, channels, e);
}

#endif

#if defined(__riscv)

/* Loads moved up would take registers of sums. */
#define UNSCHEDULED __attribute__((noinline, optimize("no-schedule-insns")))

struct four {
    struct pair upper, lower;
};

/* An output byte of a channel that is scaled down with two roundings. */
static inline uint8_t narrowed(int32_t dot, int32_t sum, const int32_t *channel, const struct fl_gemm *e)
{
    const int32_t acc = fl_add_wrapping(channel[FL_BIAS], dot - e->weight_zero_point * sum);
    const int32_t y = scaled_down(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT]);
    return (uint8_t)fl_clamp(y + e->zero_point, e->low, e->high);
}

/* Column j of four rows. */
static void finish_4(int32_t a, int32_t b, int32_t c, int32_t d, int32_t j, const struct four *r,
                     const int32_t *channels, const struct fl_gemm *e)
{
    const int32_t *channel = channels + j * FL_CHANNEL;
    const int32_t at = j * e->y_column;
    if (e->single_rounding || channel[FL_SHIFT] >= 0) {
        finish_1(a, j, &r->upper.a, channels, e);
        finish_1(b, j, &r->upper.b, channels, e);
        finish_1(c, j, &r->lower.a, channels, e);
        finish_1(d, j, &r->lower.b, channels, e);
        return;
    }
    const uint8_t y0 = narrowed(a, r->upper.a.sum, channel, e), y1 = narrowed(b, r->upper.b.sum, channel, e);
    const uint8_t y2 = narrowed(c, r->lower.a.sum, channel, e), y3 = narrowed(d, r->lower.b.sum, channel, e);
    r->upper.a.y[at] = y0;
    r->upper.b.y[at] = y1;
    r->lower.a.y[at] = y2;
    r->lower.b.y[at] = y3;
}

#if UINTPTR_MAX > UINT32_MAX

static inline int32_t lower_sum(uint64_t sums)
{
    return (int32_t)(uint32_t)sums;
}

static inline int32_t upper_sum(uint64_t sums)
{
    return (int32_t)(uint32_t)((sums - (uint64_t)(int64_t)lower_sum(sums)) >> 32);
}

static void split_4(uint64_t ab, uint64_t cd, int32_t j, const struct four *r, const int32_t *channels,
                    const struct fl_gemm *e)
{
    finish_4(lower_sum(ab), upper_sum(ab), lower_sum(cd), upper_sum(cd), j, r, channels, e);
}

/* Two such x at once: each k loads 12 bytes for 32 products. */
UNSCHEDULED static void panel_4(const struct four *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    const int8_t *x0 = r->upper.a.x, *x1 = r->upper.b.x, *x2 = r->lower.a.x, *x3 = r->lower.b.x;
    const int8_t *const end = x0 + k;
    uint64_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    uint64_t b0 = 0, b1 = 0, b2 = 0, b3 = 0, b4 = 0, b5 = 0, b6 = 0, b7 = 0;
    while (x0 != end) {
        const uint64_t x = (uint64_t)(int64_t)*x0++ + ((uint64_t)(int64_t)*x1++ << 32);
        const uint64_t z = (uint64_t)(int64_t)*x2++ + ((uint64_t)(int64_t)*x3++ << 32);
        a0 += x * (uint64_t)(int64_t)w[0];
        b0 += z * (uint64_t)(int64_t)w[0];
        a1 += x * (uint64_t)(int64_t)w[1];
        b1 += z * (uint64_t)(int64_t)w[1];
        a2 += x * (uint64_t)(int64_t)w[2];
        b2 += z * (uint64_t)(int64_t)w[2];
        a3 += x * (uint64_t)(int64_t)w[3];
        b3 += z * (uint64_t)(int64_t)w[3];
        a4 += x * (uint64_t)(int64_t)w[4];
        b4 += z * (uint64_t)(int64_t)w[4];
        a5 += x * (uint64_t)(int64_t)w[5];
        b5 += z * (uint64_t)(int64_t)w[5];
        a6 += x * (uint64_t)(int64_t)w[6];
        b6 += z * (uint64_t)(int64_t)w[6];
        a7 += x * (uint64_t)(int64_t)w[7];
        b7 += z * (uint64_t)(int64_t)w[7];
        w += FL_PANEL;
    }
    split_4(a0, b0, 0, r, channels, e);
    split_4(a1, b1, 1, r, channels, e);
    split_4(a2, b2, 2, r, channels, e);
    split_4(a3, b3, 3, r, channels, e);
    split_4(a4, b4, 4, r, channels, e);
    split_4(a5, b5, 5, r, channels, e);
    split_4(a6, b6, 6, r, channels, e);
    split_4(a7, b7, 7, r, channels, e);
}

/* Three sums of 21 bits in one register, for few products:
 *
 *     x = x0 + x1 * 2^21 + x2 * 2^42         each k loads 14 bytes for 48 products
 *
 * SEGMENT products of two int8 are in (-2^20, 2^20]; after so many the sums are taken apart and added up. They begin with
 * -1, so that they fit 21 bits with a sign. */
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
        a0 += x * (uint64_t)(int64_t)w[0];
        b0 += z * (uint64_t)(int64_t)w[0];
        a1 += x * (uint64_t)(int64_t)w[1];
        b1 += z * (uint64_t)(int64_t)w[1];
        a2 += x * (uint64_t)(int64_t)w[2];
        b2 += z * (uint64_t)(int64_t)w[2];
        a3 += x * (uint64_t)(int64_t)w[3];
        b3 += z * (uint64_t)(int64_t)w[3];
        a4 += x * (uint64_t)(int64_t)w[4];
        b4 += z * (uint64_t)(int64_t)w[4];
        a5 += x * (uint64_t)(int64_t)w[5];
        b5 += z * (uint64_t)(int64_t)w[5];
        a6 += x * (uint64_t)(int64_t)w[6];
        b6 += z * (uint64_t)(int64_t)w[6];
        a7 += x * (uint64_t)(int64_t)w[7];
        b7 += z * (uint64_t)(int64_t)w[7];
        w += FL_PANEL;
    }
    spread(a0, b0, &s->c0);
    spread(a1, b1, &s->c1);
    spread(a2, b2, &s->c2);
    spread(a3, b3, &s->c3);
    spread(a4, b4, &s->c4);
    spread(a5, b5, &s->c5);
    spread(a6, b6, &s->c6);
    spread(a7, b7, &s->c7);
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
    finish_6(&s.c0, 0, r, channels, e);
    finish_6(&s.c1, 1, r, channels, e);
    finish_6(&s.c2, 2, r, channels, e);
    finish_6(&s.c3, 3, r, channels, e);
    finish_6(&s.c4, 4, r, channels, e);
    finish_6(&s.c5, 5, r, channels, e);
    finish_6(&s.c6, 6, r, channels, e);
    finish_6(&s.c7, 7, r, channels, e);
}

#else

/* Half a panel: each k loads 8 bytes for 16 products. */
UNSCHEDULED static void half_4(const struct four *r, const int8_t *w, int32_t k, int32_t j, const int32_t *channels,
                   const struct fl_gemm *e)
{
    const int8_t *x0 = r->upper.a.x, *x1 = r->upper.b.x, *x2 = r->lower.a.x, *x3 = r->lower.b.x;
    const int8_t *const end = x0 + k;
    int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    int32_t c0 = 0, c1 = 0, c2 = 0, c3 = 0, d0 = 0, d1 = 0, d2 = 0, d3 = 0;
#pragma GCC unroll 2
    while (x0 != end) {
        const int32_t t = *x0++, u = *x1++, v = *x2++, z = *x3++;
        a0 += t * w[0];
        b0 += u * w[0];
        c0 += v * w[0];
        d0 += z * w[0];
        a1 += t * w[1];
        b1 += u * w[1];
        c1 += v * w[1];
        d1 += z * w[1];
        a2 += t * w[2];
        b2 += u * w[2];
        c2 += v * w[2];
        d2 += z * w[2];
        a3 += t * w[3];
        b3 += u * w[3];
        c3 += v * w[3];
        d3 += z * w[3];
        w += FL_PANEL;
    }
    finish_4(a0, b0, c0, d0, j, r, channels, e);
    finish_4(a1, b1, c1, d1, j + 1, r, channels, e);
    finish_4(a2, b2, c2, d2, j + 2, r, channels, e);
    finish_4(a3, b3, c3, d3, j + 3, r, channels, e);
}

UNSCHEDULED static void panel_4(const struct four *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
{
    half_4(r, w, k, 0, channels, e);
    half_4(r, w + FL_PANEL / 2, k, FL_PANEL / 2, channels, e);
}

#endif
#endif

/* One row by all columns. */
static void row_by_columns(struct row r, const int8_t *w, int32_t columns, int32_t k, const int32_t *channels,
                           const struct fl_gemm *e)
{
    for (; columns >= FL_PANEL; columns -= FL_PANEL) {
        panel_1(&r, w, k, channels, e);
        r.y += FL_PANEL * e->y_column;
        w += FL_PANEL * k;
        channels += FL_PANEL * FL_CHANNEL;
    }
    for (int32_t j = 0; j < columns; j++) {
        finish_1(dot(r.x, w, k), j, &r, channels, e);
        w += k;
    }
}

/* Two rows by all columns. */
static void pair_by_columns(struct pair r, const int8_t *w, int32_t columns, int32_t k, const int32_t *channels,
                            const struct fl_gemm *e)
{
    for (; columns >= FL_PANEL; columns -= FL_PANEL) {
        panel_2(&r, w, k, channels, e);
        r.a.y += FL_PANEL * e->y_column;
        r.b.y += FL_PANEL * e->y_column;
        w += FL_PANEL * k;
        channels += FL_PANEL * FL_CHANNEL;
    }
    for (int32_t j = 0; j < columns; j++) {
        finish_1(dot(r.a.x, w, k), j, &r.a, channels, e);
        finish_1(dot(r.b.x, w, k), j, &r.b, channels, e);
        w += k;
    }
}

static struct row row_of(const int8_t *x, uint8_t *y, int32_t i, int32_t k, const struct fl_gemm *e)
{
    x += i * e->x_row;
    return (struct row){x, e->weight_zero_point != 0 ? sum_of(x, k) : 0, y + i * e->y_row};
}

#if defined(__riscv)

static struct pair moved(struct pair r, int32_t by)
{
    r.a.y += by;
    r.b.y += by;
    return r;
}

/* Four rows by all panels. */
static void all_panels(struct four r, const int8_t *w, int32_t columns, int32_t k, const int32_t *channels,
                       const struct fl_gemm *e)
{
    for (; columns >= FL_PANEL; columns -= FL_PANEL) {
        panel_4(&r, w, k, channels, e);
        r.upper = moved(r.upper, FL_PANEL * e->y_column);
        r.lower = moved(r.lower, FL_PANEL * e->y_column);
        w += FL_PANEL * k;
        channels += FL_PANEL * FL_CHANNEL;
    }
    pair_by_columns(r.upper, w, columns, k, channels, e);
    pair_by_columns(r.lower, w, columns, k, channels, e);
}

#if UINTPTR_MAX > UINT32_MAX

/* Six rows by all panels. */
static void all_panels_6(struct six r, const int8_t *w, int32_t columns, int32_t k, const int32_t *channels,
                         const struct fl_gemm *e)
{
    for (; columns >= FL_PANEL; columns -= FL_PANEL) {
        panel_6(&r, w, k, channels, e);
        r.upper.upper = moved(r.upper.upper, FL_PANEL * e->y_column);
        r.upper.lower = moved(r.upper.lower, FL_PANEL * e->y_column);
        r.lower = moved(r.lower, FL_PANEL * e->y_column);
        w += FL_PANEL * k;
        channels += FL_PANEL * FL_CHANNEL;
    }
    pair_by_columns(r.upper.upper, w, columns, k, channels, e);
    pair_by_columns(r.upper.lower, w, columns, k, channels, e);
    pair_by_columns(r.lower, w, columns, k, channels, e);
}

#endif

/* All blocks of four rows and, for many products, of six; returns how many rows that are. */
ONCE int32_t blocks_of_rows(const int8_t *x, const int8_t *w, const int32_t *channels, uint8_t *y, int32_t rows,
                            int32_t columns, int32_t depth, const struct fl_gemm *e)
{
    int32_t i = 0;
#if UINTPTR_MAX > UINT32_MAX
    for (; depth >= SEGMENT / 2 && i + 6 <= rows; i += 6) {
        const struct six r = {
            x + i * e->x_row,
            e->x_row,
            {
                {row_of(x, y, i, depth, e), row_of(x, y, i + 1, depth, e)},
                {row_of(x, y, i + 2, depth, e), row_of(x, y, i + 3, depth, e)},
            },
            {row_of(x, y, i + 4, depth, e), row_of(x, y, i + 5, depth, e)},
        };
        all_panels_6(r, w, columns, depth, channels, e);
    }
#endif
    for (; i + 4 <= rows; i += 4) {
        const struct four r = {
            {row_of(x, y, i, depth, e), row_of(x, y, i + 1, depth, e)},
            {row_of(x, y, i + 2, depth, e), row_of(x, y, i + 3, depth, e)},
        };
        all_panels(r, w, columns, depth, channels, e);
    }
    return i;
}

#endif

void fl_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t rows, int32_t columns,
                int32_t depth, const void *parameters)
{
    const struct fl_gemm *e = parameters;
    int32_t i = 0;
#if defined(__riscv)
    if (rows >= 4) {
        i = blocks_of_rows(x, w, channels, y, rows, columns, depth, e);
    }
#endif
    for (; i + 2 <= rows; i += 2) {
        const struct pair r = {row_of(x, y, i, depth, e), row_of(x, y, i + 1, depth, e)};
        pair_by_columns(r, w, columns, depth, channels, e);
    }
    if (i < rows) {
        row_by_columns(row_of(x, y, i, depth, e), w, columns, depth, channels, e);
    }
}

void fl_row_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t columns, int32_t depth,
               const void *parameters)
{
    row_by_columns(row_of(x, y, 0, depth, parameters), w, columns, depth, channels, parameters);
}
