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
#include "requantize.h"

/* One output byte; int8 and uint8 differ only in the bounds. `sum` is that of the row of x, for weights with a zero
 * point. */
static inline __attribute__((always_inline)) uint8_t output(int32_t dot, int32_t sum, const int32_t *channel,
                                                            const struct fl_gemm *e)
{
    const int32_t acc = fl_add_wrapping(channel[FL_BIAS], dot - e->weight_zero_point * sum);
    const int32_t scaled = e->single_rounding ? fl_requantize_single(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT])
                                              : fl_requantize_double(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT]);
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
static void finish_1(int32_t dot, int32_t j, const struct row *r, const int32_t *channels, const struct fl_gemm *e)
{
    r->y[j * e->y_column] = output(dot, r->sum, channels + j * FL_CHANNEL, e);
}

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
static void panel_1(const struct row *r, const int8_t *w, int32_t k, const int32_t *channels, const struct fl_gemm *e)
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

#else

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

/* One or two rows by all columns. */
static void all_columns(struct pair r, int32_t rows, const int8_t *w, int32_t columns, int32_t k,
                        const int32_t *channels, const struct fl_gemm *e)
{
    for (; columns >= FL_PANEL; columns -= FL_PANEL) {
        if (rows == 2) {
            panel_2(&r, w, k, channels, e);
        } else {
            panel_1(&r.a, w, k, channels, e);
        }
        r.a.y += FL_PANEL * e->y_column;
        r.b.y += FL_PANEL * e->y_column;
        w += FL_PANEL * k;
        channels += FL_PANEL * FL_CHANNEL;
    }
    for (int32_t j = 0; j < columns; j++) {
        finish_1(dot(r.a.x, w, k), j, &r.a, channels, e);
        if (rows == 2) {
            finish_1(dot(r.b.x, w, k), j, &r.b, channels, e);
        }
        w += k;
    }
}

static struct row row_of(const int8_t *x, uint8_t *y, int32_t i, int32_t k, const struct fl_gemm *e)
{
    x += i * e->x_row;
    return (struct row){x, e->weight_zero_point != 0 ? sum_of(x, k) : 0, y + i * e->y_row};
}

void fl_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t rows, int32_t columns,
                int32_t depth, const void *parameters)
{
    const struct fl_gemm *e = parameters;
    int32_t i = 0;
    for (; i + 2 <= rows; i += 2) {
        const struct pair r = {row_of(x, y, i, depth, e), row_of(x, y, i + 1, depth, e)};
        all_columns(r, 2, w, columns, depth, channels, e);
    }
    if (i < rows) {
        const struct row last = row_of(x, y, i, depth, e);
        all_columns((struct pair){last, last}, 1, w, columns, depth, channels, e);
    }
}
