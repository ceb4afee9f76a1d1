#include "pool.h"

#include "averages.h"

enum { W = RVP_WORD_BYTES };

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

/* Pixels of whole registers are processed by registers. On RV64, pixels of whole lanes are processed by the lower lanes of
 * registers: `is_lane`, a literal, is 1. Then the upper lanes are not used.
 */
RVP_INLINE int bytes_of(int is_lane)
{
    return is_lane ? W / RVP_LANES : W;
}

RVP_INLINE rvp_word read_bytes(const int8_t *from, int is_lane)
{
    return is_lane ? (rvp_word)rvp_load_lane(from) : rvp_load(from);
}

RVP_INLINE void write_bytes(int8_t *to, rvp_word bytes, int is_lane)
{
    if (is_lane) {
        rvp_store_lane(to, bytes);
    } else {
        rvp_store(to, bytes);
    }
}

/* Adds one pixel. */
RVP_INLINE void add_bytes(rvp_word *even, rvp_word *odd, const int8_t *from, int is_unsigned, int is_lane)
{
    const rvp_word bytes = read_bytes(from, is_lane);
    *even = rvp_add16(*even, is_unsigned ? rvp_zunpkd820(bytes) : rvp_sunpkd820(bytes));
    *odd = rvp_add16(*odd, is_unsigned ? rvp_zunpkd831(bytes) : rvp_sunpkd831(bytes));
}

/* The output's bounds, in every byte. */
struct bounds {
    rvp_word lowest, highest;
};

/* A register of means from the sums of its even and odd bytes. */
RVP_INLINE void write_means(int8_t *y, rvp_word even, rvp_word odd, const struct divider *d, struct bounds b,
                            int is_unsigned, int is_lane)
{
    const rvp_word means = divide(even, d) | divide(odd, d) << 8;
    write_bytes(y,
                is_unsigned ? rvp_umin8(rvp_umax8(means, b.lowest), b.highest)
                            : rvp_smin8(rvp_smax8(means ^ rvp_splat8(0x80), b.lowest), b.highest),
                is_lane);
}

/* Means of `channels`, divided one by one. */
static void write_any_means(int8_t *y, rvp_word even, rvp_word odd, int count, const struct rvp_pool *p,
                            int channels, int is_unsigned)
{
    for (int c = 0; c < channels; c += 2) {
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

/* Registers of channels that are added at the same time. */
enum { STRIP = 4 };

/* Prevents loads from moving before it: all loads at once need more registers than there are. */
#define LOADS_BEHIND() __asm__ volatile("" ::: "memory")

/* Sums of STRIP registers over pixels that lie one after the other; if their number is odd, the first is added alone.
 *
 * `lanes` gets the 16-bit sums of even and of odd bytes of each register, alternately. All sums begin with `start`.
 */
RVP_INLINE void add_run(rvp_word *lanes, const int8_t *x, int pixels, int step, rvp_word start, int is_unsigned, int is_lane)
{
    const int size = bytes_of(is_lane);
    static const rvp_word nothing[STRIP];
    const int8_t *const end = x + pixels * step;
    const int8_t *next = pixels % 2 != 0 ? (const int8_t *)nothing : x + step;
    int further = pixels % 2 != 0 ? step : 2 * step;
    const struct sums none = {start, start, start, start}; /* their upper halves are not used */
    struct sums s[STRIP] = {none, none, none, none};
    do {
        add_pair(&s[0], read_bytes(x, is_lane), read_bytes(next, is_lane), is_unsigned);
        LOADS_BEHIND();
        add_pair(&s[1], read_bytes(x + size, is_lane), read_bytes(next + size, is_lane), is_unsigned);
        LOADS_BEHIND();
        add_pair(&s[2], read_bytes(x + 2 * size, is_lane), read_bytes(next + 2 * size, is_lane), is_unsigned);
        LOADS_BEHIND();
        add_pair(&s[3], read_bytes(x + 3 * size, is_lane), read_bytes(next + 3 * size, is_lane), is_unsigned);
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

/* Separate functions: the sums of a strip take most registers. */
typedef void strip(rvp_word *lanes, const int8_t *x, int pixels, int step, rvp_word start);

#define STRIP_OF(name, is_unsigned, is_lane)                                                                           \
    static __attribute__((noinline)) void name(rvp_word *lanes, const int8_t *x, int pixels, int step, rvp_word start) \
    {                                                                                                                  \
        add_run(lanes, x, pixels, step, start, is_unsigned, is_lane);                                                  \
    }

STRIP_OF(strip_s8, 0, 0)
STRIP_OF(strip_u8, 1, 0)
#if __riscv_xlen == 64
STRIP_OF(strip_lanes_s8, 0, 1)
STRIP_OF(strip_lanes_u8, 1, 1)
#endif

/* Sums of a register of channels over a window: of bytes 0, 2, ... in the 16-bit lanes of `even`, of the others in `odd`. */
RVP_INLINE void add_window(rvp_word *even, rvp_word *odd, const int8_t *x, const struct window *v, int is_unsigned, int is_lane)
{
    const int step = v->pixel_step, row_step = v->row_step;
    for (int ky = v->rows; ky > 0; ky--) {
        const int8_t *from = x;
        for (int kx = v->columns; kx > 0; kx--) {
            add_bytes(even, odd, from, is_unsigned, is_lane);
            from += step;
        }
        x += row_step;
    }
}

/* A register of means of a window of 3x3. */
RVP_INLINE void average_3x3(int8_t *y, const int8_t *x, const struct window *v, const struct divider *d, struct bounds b,
                            int is_unsigned, int is_lane)
{
    const int step = v->pixel_step, row_step = v->row_step;
    rvp_word even = d->start, odd = d->start;
#pragma GCC unroll 3
    for (int ky = 0; ky < 3; ky++) {
        add_bytes(&even, &odd, x, is_unsigned, is_lane);
        add_bytes(&even, &odd, x + step, is_unsigned, is_lane);
        add_bytes(&even, &odd, x + 2 * step, is_unsigned, is_lane);
        x += row_step;
    }
    write_means(y, even, odd, d, b, is_unsigned, is_lane);
}

/* One output. */
RVP_INLINE void average(const int8_t *x, int8_t *y, const struct window *v, struct divider d, struct bounds b,
                        const struct rvp_pool *p, strip *sums_of_strip, int is_unsigned, int is_lane)
{
    const int8_t *const end = x + p->channels;
    const int size = bytes_of(is_lane);
    if (v->rows == 3 && v->columns == 3 && d.start != 0) {
        for (; x < end; x += size, y += size) {
            average_3x3(y, x, v, &d, b, is_unsigned, is_lane);
        }
        return;
    }
    const int pixels = v->rows * v->columns;
    const int is_run = pixels > 0 && v->columns * v->pixel_step == v->row_step;
    while (x < end) {
        rvp_word lanes[2 * STRIP];
        const rvp_word *last = lanes + 2 * STRIP;
        if (is_run && end - x >= STRIP * size) {
            sums_of_strip(lanes, x, pixels, v->pixel_step, d.start);
        } else {
            rvp_word even = d.start, odd = d.start;
            add_window(&even, &odd, x, v, is_unsigned, is_lane);
            lanes[0] = even;
            lanes[1] = odd;
            last = lanes + 2;
        }
        for (const rvp_word *sums = lanes; sums != last; sums += 2, x += size, y += size) {
            if (d.start != 0) {
                write_means(y, sums[0], sums[1], &d, b, is_unsigned, is_lane);
            } else {
                write_any_means(y, sums[0], sums[1], d.count, p, size, is_unsigned);
            }
        }
    }
}

/* An image. */
RVP_INLINE void pool(const int8_t *x, int8_t *y, const struct rvp_pool *p, strip *sums_of_strip, int is_unsigned, int is_lane)
{
    const int channels = p->channels;
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
            if (v.rows * v.columns != d.count) {
                d = divider_of(v.rows * v.columns, is_unsigned);
            }
            average(from, y, &v, d, b, p, sums_of_strip, is_unsigned, is_lane);
            y += channels;
        }
    }
}

#define ENTRY(name, sums_of_strip, is_unsigned, is_lane)                                                               \
    void name(const void *x, void *y, const int32_t *parameters)                                                       \
    {                                                                                                                  \
        pool(x, y, (const struct rvp_pool *)parameters, sums_of_strip, is_unsigned, is_lane);                          \
    }

ENTRY(rvp_avg_pool_s8, strip_s8, 0, 0)
ENTRY(rvp_avg_pool_u8, strip_u8, 1, 0)
#if __riscv_xlen == 64
ENTRY(rvp_avg_pool_lanes_s8, strip_lanes_s8, 0, 1)
ENTRY(rvp_avg_pool_lanes_u8, strip_lanes_u8, 1, 1)
#endif
