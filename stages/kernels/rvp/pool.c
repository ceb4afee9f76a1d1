#include "pool.h"

#include "averages.h"

enum { W = RVP_WORD_BYTES };
enum kind { AVERAGE_SIGNED, AVERAGE_UNSIGNED, MAXIMUM_SIGNED, MAXIMUM_UNSIGNED };

/* The elements of a window that lie inside the image: `rows` of `columns` pixels. */
struct window {
    int rows, columns;
    int row_step, pixel_step; /* bytes */
};

RVP_INLINE int clip(int value, int lowest, int highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

/* The mean, halves away from zero, of `count` elements that add up to `sum`. */
RVP_INLINE int mean(int sum, int count)
{
    const int half = count / 2;
    return (sum > 0 ? sum + half : sum - half) / count;
}

/* Adds one pixel. */
RVP_INLINE void add_bytes(rvp_word *even, rvp_word *odd, const int8_t *from, int is_unsigned)
{
    const rvp_word bytes = rvp_load(from);
    *even = rvp_add16(*even, is_unsigned ? rvp_zunpkd820(bytes) : rvp_sunpkd820(bytes));
    *odd = rvp_add16(*odd, is_unsigned ? rvp_zunpkd831(bytes) : rvp_sunpkd831(bytes));
}

/* The output's bounds, in every byte. */
struct bounds {
    rvp_word lowest, highest;
};

/* A register of means from the sums of its even and odd bytes. */
RVP_INLINE void write_means(int8_t *y, rvp_word even, rvp_word odd, const struct divider *d, struct bounds b,
                            int is_unsigned)
{
    const rvp_word means = divide(even, d) | divide(odd, d) << 8;
    rvp_store(y, is_unsigned ? rvp_umin8(rvp_umax8(means, b.lowest), b.highest)
                             : rvp_smin8(rvp_smax8(means ^ rvp_splat8(0x80), b.lowest), b.highest));
}

/* The same, divided one by one. */
static void write_any_means(int8_t *y, rvp_word even, rvp_word odd, int count, const struct rvp_pool *p,
                            int is_unsigned)
{
    for (int c = 0; c < W; c += 2) {
        const int first = is_unsigned ? (uint16_t)even : (int16_t)even;
        const int second = is_unsigned ? (uint16_t)odd : (int16_t)odd;
        y[c] = (int8_t)clip(mean(first, count), p->lowest, p->highest);
        y[c + 1] = (int8_t)clip(mean(second, count), p->lowest, p->highest);
        even >>= 16;
        odd >>= 16;
    }
}

/* 32-bit sums of the bytes of a register, in order: of every fourth channel in the lanes of one. */
struct sums {
    rvp_word first, second, third, fourth;
};

/* Adds two pixels: bytes of one channel are brought together, and added up by a product.
 *
 *     a3 a2 a1 a0   b3 b2 b1 b0   ->   b1 b0 a1 a0   b3 b2 a3 a2   times   0 1 0 1   and   1 0 1 0
 */
RVP_INLINE void add_pair(struct sums *s, rvp_word a, rvp_word b, int is_unsigned)
{
    const rvp_word low = rvp_splat16(0x0001), high = rvp_splat16(0x0100);
    const rvp_word lower = rvp_pkbb16(b, a), upper = rvp_pktt16(b, a);
    s->first = is_unsigned ? rvp_smaqa_su(s->first, low, lower) : rvp_smaqa(s->first, low, lower);
    s->second = is_unsigned ? rvp_smaqa_su(s->second, high, lower) : rvp_smaqa(s->second, high, lower);
    s->third = is_unsigned ? rvp_smaqa_su(s->third, low, upper) : rvp_smaqa(s->third, low, upper);
    s->fourth = is_unsigned ? rvp_smaqa_su(s->fourth, high, upper) : rvp_smaqa(s->fourth, high, upper);
}

/* Registers of channels whose sums are made side by side. */
enum { STRIP = 4 };

/* Keeps loads behind it: all at once take more registers than there are. */
#define LOADS_BEHIND() __asm__ volatile("" ::: "memory")

/* Sums of STRIP registers over pixels that lie one after the other; where their number is odd the first is alone.
 *
 * To `lanes` go those of even and of odd bytes of each register in turn, in 16 bits. All begin with `start`.
 */
RVP_INLINE void add_run(rvp_word *lanes, const int8_t *x, int pixels, int step, rvp_word start, int is_unsigned)
{
    static const rvp_word nothing[STRIP];
    const int8_t *const end = x + pixels * step;
    const int8_t *next = pixels % 2 != 0 ? (const int8_t *)nothing : x + step;
    int further = pixels % 2 != 0 ? step : 2 * step;
    const struct sums none = {start, start, start, start}; /* whose upper halves nobody reads */
    struct sums s[STRIP] = {none, none, none, none};
    do {
        add_pair(&s[0], rvp_load(x), rvp_load(next), is_unsigned);
        LOADS_BEHIND();
        add_pair(&s[1], rvp_load(x + W), rvp_load(next + W), is_unsigned);
        LOADS_BEHIND();
        add_pair(&s[2], rvp_load(x + 2 * W), rvp_load(next + 2 * W), is_unsigned);
        LOADS_BEHIND();
        add_pair(&s[3], rvp_load(x + 3 * W), rvp_load(next + 3 * W), is_unsigned);
        x += further;
        next = x + step;
        further = 2 * step;
    } while (x != end);
#pragma GCC unroll 4
    for (int n = 0; n < STRIP; n++) {
        lanes[2 * n] = rvp_pkbb16(s[n].third, s[n].first);
        lanes[2 * n + 1] = rvp_pkbb16(s[n].fourth, s[n].second);
    }
}

/* Functions of their own: the sums of a strip take most of the registers that there are. */
static __attribute__((noinline)) void add_run_s8(rvp_word *lanes, const int8_t *x, int pixels, int step, rvp_word start)
{
    add_run(lanes, x, pixels, step, start, 0);
}

static __attribute__((noinline)) void add_run_u8(rvp_word *lanes, const int8_t *x, int pixels, int step, rvp_word start)
{
    add_run(lanes, x, pixels, step, start, 1);
}

/* One output: bytes 0, 2, ... of W channels add up in the 16-bit lanes of `even`, the others in `odd`. */
RVP_INLINE void average(const int8_t *x, int8_t *y, const struct window *v, struct divider d, struct bounds b,
                        const struct rvp_pool *p, int is_unsigned)
{
    const int step = v->pixel_step, row_step = v->row_step;
    const int8_t *const end = x + p->channels;
    if (v->rows == 3 && v->columns == 3 && d.start != 0) {
        for (; x < end; x += W, y += W) {
            rvp_word even = d.start, odd = d.start;
            const int8_t *row = x;
#pragma GCC unroll 3
            for (int ky = 0; ky < 3; ky++) {
                add_bytes(&even, &odd, row, is_unsigned);
                add_bytes(&even, &odd, row + step, is_unsigned);
                add_bytes(&even, &odd, row + 2 * step, is_unsigned);
                row += row_step;
            }
            write_means(y, even, odd, &d, b, is_unsigned);
        }
        return;
    }
    const int pixels = v->rows * v->columns;
    const int is_run = pixels > 0 && v->columns * step == row_step;
    while (x < end) {
        rvp_word lanes[2 * STRIP];
        const rvp_word *last = lanes + 2 * STRIP;
        if (is_run && end - x >= STRIP * W) {
            (is_unsigned ? add_run_u8 : add_run_s8)(lanes, x, pixels, step, d.start);
        } else {
            rvp_word even = d.start, odd = d.start;
            const int8_t *row = x;
            for (int ky = v->rows; ky > 0; ky--) {
                const int8_t *from = row;
                for (int kx = v->columns; kx > 0; kx--) {
                    add_bytes(&even, &odd, from, is_unsigned);
                    from += step;
                }
                row += row_step;
            }
            lanes[0] = even;
            lanes[1] = odd;
            last = lanes + 2;
        }
        for (const rvp_word *sums = lanes; sums != last; sums += 2, x += W, y += W) {
            if (d.start != 0) {
                write_means(y, sums[0], sums[1], &d, b, is_unsigned);
            } else {
                write_any_means(y, sums[0], sums[1], d.count, p, is_unsigned);
            }
        }
    }
}

RVP_INLINE rvp_word larger_bytes(rvp_word a, rvp_word b, int is_unsigned)
{
    return is_unsigned ? rvp_umax8(a, b) : rvp_smax8(a, b);
}

/* One output, W channels at a time. */
RVP_INLINE void maximum(const int8_t *x, int8_t *y, const struct window *v, struct bounds b, int channels,
                        int is_unsigned)
{
    const int step = v->pixel_step, row_step = v->row_step;
    const int8_t *const end = x + channels;
    if (v->rows == 3 && v->columns == 3) {
        for (; x < end; x += W, y += W) {
            rvp_word largest = b.lowest;
            const int8_t *row = x;
#pragma GCC unroll 3
            for (int ky = 0; ky < 3; ky++) {
                largest = larger_bytes(largest, rvp_load(row), is_unsigned);
                largest = larger_bytes(largest, rvp_load(row + step), is_unsigned);
                largest = larger_bytes(largest, rvp_load(row + 2 * step), is_unsigned);
                row += row_step;
            }
            rvp_store(y, is_unsigned ? rvp_umin8(largest, b.highest) : rvp_smin8(largest, b.highest));
        }
        return;
    }
    for (; x < end; x += W, y += W) {
        rvp_word largest = b.lowest;
        const int8_t *row = x;
        for (int ky = v->rows; ky > 0; ky--) {
            const int8_t *from = row;
            for (int kx = v->columns; kx > 0; kx--) {
                largest = larger_bytes(largest, rvp_load(from), is_unsigned);
                from += step;
            }
            row += row_step;
        }
        rvp_store(y, is_unsigned ? rvp_umin8(largest, b.highest) : rvp_smin8(largest, b.highest));
    }
}

RVP_INLINE void pool(const int8_t *x, int8_t *y, const struct rvp_pool *p, enum kind kind)
{
    const int channels = p->channels;
    const int averages = kind == AVERAGE_SIGNED || kind == AVERAGE_UNSIGNED;
    const struct bounds b = {rvp_splat8(p->lowest), rvp_splat8(p->highest)};
    struct window v = {.row_step = p->width * channels, .pixel_step = channels};
    struct divider d = {.count = 0};
    for (int oy = 0; oy < p->out_height; oy++) {
        const int y0 = oy * p->stride_y - p->top;
        const int first_row = clip(y0, 0, p->height);
        v.rows = clip(y0 + p->kernel_y, 0, p->height) - first_row;
        for (int ox = 0; ox < p->out_width; ox++) {
            const int x0 = ox * p->stride_x - p->left;
            const int first_column = clip(x0, 0, p->width);
            v.columns = clip(x0 + p->kernel_x, 0, p->width) - first_column;
            const int8_t *const from = x + (first_row * p->width + first_column) * channels;
            if (averages) {
                if (v.rows * v.columns != d.count) {
                    d = divider_of(v.rows * v.columns, kind == AVERAGE_UNSIGNED);
                }
                average(from, y, &v, d, b, p, kind == AVERAGE_UNSIGNED);
            } else {
                maximum(from, y, &v, b, channels, kind == MAXIMUM_UNSIGNED);
            }
            y += channels;
        }
    }
}

void rvp_avg_pool_s8(const void *x, void *y, const int32_t *parameters)
{
    pool(x, y, (const struct rvp_pool *)parameters, AVERAGE_SIGNED);
}

void rvp_avg_pool_u8(const void *x, void *y, const int32_t *parameters)
{
    pool(x, y, (const struct rvp_pool *)parameters, AVERAGE_UNSIGNED);
}

void rvp_max_pool_s8(const void *x, void *y, const int32_t *parameters)
{
    pool(x, y, (const struct rvp_pool *)parameters, MAXIMUM_SIGNED);
}

void rvp_max_pool_u8(const void *x, void *y, const int32_t *parameters)
{
    pool(x, y, (const struct rvp_pool *)parameters, MAXIMUM_UNSIGNED);
}
