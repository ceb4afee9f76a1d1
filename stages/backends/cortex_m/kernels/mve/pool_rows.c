/* Pooling by rows (include/pool_rows.h): 16 maxima or 8 sums at a time. */
#include "pool_rows.h"

#include "mve_pool_rows.h"
#include "pool_mean.h"

/* The maximum of two or three rows; `load` reads an element. The row pointers end after the rows. */
#define OF_TWO(load, combine, store, bits, step)                                                                       \
    __asm__ volatile("wlstp." bits " lr, %[count], 2f\n"                                                               \
                     "1: vldrb." load " %q[s], [%[a]], #" step "\n"                                                    \
                     "vldrb." load " %q[t], [%[b]], #" step "\n" combine " %q[s], %q[s], %q[t]\n" store                \
                     "letp lr, 1b\n"                                                                                   \
                     "2:"                                                                                              \
                     : [to] "+l"(to), [a] "+l"(a), [b] "+l"(b), [s] "=&w"(s), [t] "=&w"(t)                             \
                     : [count] "r"(count)                                                                              \
                     : "lr", "memory")
#define OF_THREE(load, combine, store, bits, step)                                                                     \
    __asm__ volatile("wlstp." bits " lr, %[count], 2f\n"                                                               \
                     "1: vldrb." load " %q[s], [%[a]], #" step "\n"                                                    \
                     "vldrb." load " %q[t], [%[b]], #" step "\n" combine " %q[s], %q[s], %q[t]\n"                      \
                     "vldrb." load " %q[t], [%[c]], #" step "\n" combine " %q[s], %q[s], %q[t]\n" store                \
                     "letp lr, 1b\n"                                                                                   \
                     "2:"                                                                                              \
                     : [to] "+l"(to), [a] "+l"(a), [b] "+l"(b), [c] "+l"(c), [s] "=&w"(s), [t] "=&w"(t)                \
                     : [count] "r"(count)                                                                              \
                     : "lr", "memory")

MVE_INLINE void larger_of_two(uint8_t *to, const uint8_t *a, const uint8_t *b, int32_t count, int is_unsigned)
{
    uint8x16_t s, t;
    if (is_unsigned) {
        OF_TWO("8", "vmax.u8", "vstrb.8 %q[s], [%[to]], #16\n", "8", "16");
    } else {
        OF_TWO("8", "vmax.s8", "vstrb.8 %q[s], [%[to]], #16\n", "8", "16");
    }
}

MVE_INLINE void largest_of_three(uint8_t *to, const uint8_t *a, const uint8_t *b, const uint8_t *c, int32_t count,
                                 int is_unsigned)
{
    uint8x16_t s, t;
    if (is_unsigned) {
        OF_THREE("8", "vmax.u8", "vstrb.8 %q[s], [%[to]], #16\n", "8", "16");
    } else {
        OF_THREE("8", "vmax.s8", "vstrb.8 %q[s], [%[to]], #16\n", "8", "16");
    }
}

/* The first two or three taps at once, then pairs of taps with the previous result. */
MVE_INLINE void maxima(uint8_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count, int is_unsigned)
{
    if (taps < 3) {
        larger_of_two(to, from, from + (taps - 1) * step, count, is_unsigned);
        return;
    }
    largest_of_three(to, from, from + step, from + 2 * step, count, is_unsigned);
    int32_t done = 3;
    for (; done + 2 <= taps; done += 2) {
        largest_of_three(to, to, from + done * step, from + (done + 1) * step, count, is_unsigned);
    }
    if (done < taps) {
        larger_of_two(to, to, from + done * step, count, is_unsigned);
    }
}

/* Not inlined: one function per type, which is called for rows and for pixels. */
static __attribute__((noinline)) void maxima_s8(uint8_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count)
{
    maxima(to, from, taps, step, count, 0);
}

static __attribute__((noinline)) void maxima_u8(uint8_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count)
{
    maxima(to, from, taps, step, count, 1);
}

MVE_INLINE void pool_maxima(uint8_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count, int is_unsigned)
{
    (is_unsigned ? maxima_u8 : maxima_s8)(to, from, taps, step, count);
}

/* l + (l / channels) * (stride - 1) * channels for the bytes l of a vector: positions of the elements of pixels that are `stride` apart.
 * l / channels is (l * (256 / channels rounded up)) >> 8, which is at most 15 / 256 more and never the next integer up to 16 channels. */
MVE_INLINE uint8x16_t apart(int32_t channels, int32_t stride)
{
    const uint8x16_t lanes = vidupq_n_u8(0, 1);
    if (channels == 1) {
        return vmulq_n_u8(lanes, (uint8_t)stride);
    }
    const uint8_t reciprocal = (uint8_t)((256 + channels - 1) / channels);
    const uint8x16_t pixel = vmulhq_u8(lanes, vdupq_n_u8(reciprocal));
    return vmlaq_n_u8(lanes, pixel, (uint8_t)((stride - 1) * channels));
}

#define GATHERED(type)                                                                                                 \
    do {                                                                                                               \
        most = vldrbq_gather_offset_z_u8(from, offsets, some);                                                         \
        for (int32_t tap = 1; tap < p->kernel_width; tap++) {                                                          \
            const uint8x16_t next = vldrbq_gather_offset_z_u8(from + tap * p->channels, offsets, some);                \
            most = (uint8x16_t)vmaxq_##type((MAXIMA_##type)most, (MAXIMA_##type)next);                                 \
        }                                                                                                              \
    } while (0)
#define MAXIMA_s8 int8x16_t
#define MAXIMA_u8 uint8x16_t

/* The number of pixels that fit a vector and whose offsets fit a byte. */
MVE_INLINE void pool_gathered(uint8_t *y, const uint8_t *line, const struct fl_pool_rows *p, int is_unsigned)
{
    const int32_t step = p->stride_x * p->channels;
    const int32_t fit = 16 / p->channels, reached = 1 + (256 - p->channels) / step;
    const int32_t at_once = fit < reached ? fit : reached;
    const uint8x16_t offsets = apart(p->channels, p->stride_x);
    const uint8_t *from = line;
    for (int32_t left = p->out_width; left > 0; left -= at_once) {
        const int32_t pixels = left < at_once ? left : at_once;
        const mve_pred16_t some = vctp8q((uint32_t)(pixels * p->channels));
        uint8x16_t most;
        if (is_unsigned) {
            GATHERED(u8);
        } else {
            GATHERED(s8);
        }
        vstrbq_p_u8(y, most, some);
        y += pixels * p->channels;
        from += pixels * step;
    }
}

MVE_INLINE void pool_strided(uint8_t *y, const uint8_t *line, const struct fl_pool_rows *p, int is_unsigned)
{
    if (p->channels <= 8) {
        pool_gathered(y, line, p, is_unsigned);
        return;
    }
    for (int32_t left = p->out_width; left > 0; left--) {
        pool_maxima(y, line, p->kernel_width, p->channels, p->channels, is_unsigned);
        y += p->channels;
        line += p->stride_x * p->channels;
    }
}

#define SUM_TO "vstrh.16 %q[s], [%[to]], #16\n"

MVE_INLINE void sum_of_two(int16_t *to, const uint8_t *a, const uint8_t *b, int32_t count, int is_unsigned)
{
    int16x8_t s, t;
    if (is_unsigned) {
        OF_TWO("u16", "vadd.i16", SUM_TO, "16", "8");
    } else {
        OF_TWO("s16", "vadd.i16", SUM_TO, "16", "8");
    }
}

MVE_INLINE void sum_of_three(int16_t *to, const uint8_t *a, const uint8_t *b, const uint8_t *c, int32_t count, int is_unsigned)
{
    int16x8_t s, t;
    if (is_unsigned) {
        OF_THREE("u16", "vadd.i16", SUM_TO, "16", "8");
    } else {
        OF_THREE("s16", "vadd.i16", SUM_TO, "16", "8");
    }
}

/* to[i] += a[i], or to[i] = a[i] widened to 16 bits. */
#define ADD_ONE(load, first)                                                                                           \
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n"                                                                     \
                     "1: vldrb." load " %q[s], [%[a]], #8\n" first SUM_TO "letp lr, 1b\n"                              \
                     "2:"                                                                                              \
                     : [to] "+l"(to), [a] "+l"(a), [s] "=&w"(s), [t] "=&w"(t)                                          \
                     : [count] "r"(count)                                                                              \
                     : "lr", "memory")
#define TO_WHAT_IS_THERE "vldrh.16 %q[t], [%[to]]\nvadd.i16 %q[s], %q[s], %q[t]\n"

MVE_INLINE void add_one(int16_t *to, const uint8_t *a, int32_t count, int is_first, int is_unsigned)
{
    int16x8_t s, t;
    if (is_first && is_unsigned) {
        ADD_ONE("u16", "");
    } else if (is_first) {
        ADD_ONE("s16", "");
    } else if (is_unsigned) {
        ADD_ONE("u16", TO_WHAT_IS_THERE);
    } else {
        ADD_ONE("s16", TO_WHAT_IS_THERE);
    }
}

MVE_INLINE void pool_sums(int16_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count, int is_unsigned)
{
    int32_t done = taps < 3 ? taps : 3;
    if (taps == 1) {
        add_one(to, from, count, 1, is_unsigned);
    } else if (taps == 2) {
        sum_of_two(to, from, from + step, count, is_unsigned);
    } else {
        sum_of_three(to, from, from + step, from + 2 * step, count, is_unsigned);
    }
    for (; done < taps; done++) {
        add_one(to, from + done * step, count, 0, is_unsigned);
    }
}

/* Up to this many elements a sum s over `count` is a rounded product with m = 2^15 / count, made larger by at most 1 (2^16 of uint8):
 * s * m / 2^15 is beyond s / count, by at most 128 * count / 2^15. A mean that is not a half is at least 1 / (2 * count) away
 * from one, which is more while count^2 < 128. A mean that is a half is moved away from zero. */
enum { BY_PRODUCT = 11 };

struct pool_mean {
    int by_product;
    uint16_t reciprocal;
    struct divisor divisor;
};

MVE_INLINE struct pool_mean pool_mean_of(int32_t count, int is_unsigned)
{
    const int32_t one = is_unsigned ? 1 << 16 : 1 << 15;
    const int32_t reciprocal = count == 1 ? one - 1 : one / count + 1; /* a factor just below 1: each element is rounded to itself */
    return (struct pool_mean){count <= BY_PRODUCT, (uint16_t)reciprocal, divisor_of(count == 1 ? 2 : count)};
}

/* Products of sums of two or three. */
#define MEAN_TO(operation) operation " %q[s], %q[s], %q[r]\nvstrb.16 %q[s], [%[to]], #8\n"
#define MEANS(operation, third)                                                                                        \
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n"                                                                     \
                     "1: vldrh.16 %q[s], [%[a]], #16\n"                                                                \
                     "vldrh.16 %q[t], [%[b]], #16\n"                                                                   \
                     "vadd.i16 %q[s], %q[s], %q[t]\n" third MEAN_TO(operation) "letp lr, 1b\n"                         \
                     "2:"                                                                                              \
                     : [to] "+l"(y), [a] "+l"(a), [b] "+l"(b), [c] "+l"(c), [s] "=&w"(s), [t] "=&w"(t)                 \
                     : [count] "r"(count), [r] "w"(reciprocal)                                                         \
                     : "lr", "memory")
#define THIRD "vldrh.16 %q[t], [%[c]], #16\nvadd.i16 %q[s], %q[s], %q[t]\n"

MVE_INLINE void products(uint8_t *y, const int16_t *a, int32_t count, uint16x8_t reciprocal, const struct fl_pool_rows *p,
                         int is_unsigned)
{
    const int16_t *b = a + p->channels, *c = b + p->channels;
    int16x8_t s, t;
    if (p->kernel_width == 2 && is_unsigned) {
        MEANS("vrmulh.u16", "");
    } else if (p->kernel_width == 2) {
        MEANS("vqrdmulh.s16", "");
    } else if (is_unsigned) {
        MEANS("vrmulh.u16", THIRD);
    } else {
        MEANS("vqrdmulh.s16", THIRD);
    }
}

MVE_INLINE void pool_means(uint8_t *y, const int16_t *line, int32_t count, const struct pool_mean *by,
                           const struct fl_pool_rows *p, int is_unsigned)
{
    const int32_t channels = p->channels, taps = p->kernel_width;
    const uint16x8_t reciprocal = vdupq_n_u16(by->reciprocal);
    if (by->by_product && (taps == 2 || taps == 3)) {
        products(y, line, count, reciprocal, p, is_unsigned);
        return;
    }
    for (int32_t left = count; left > 0; left -= 8) {
        const mve_pred16_t some = vctp16q((uint32_t)left);
        const int16_t *from = line;
        uint16x8_t sum = (uint16x8_t)vldrhq_z_s16(from, some);
        for (int32_t tap = 1; tap < taps; tap++) {
            from += channels;
            sum = vaddq_u16(sum, (uint16x8_t)vldrhq_z_s16(from, some));
        }
        if (!by->by_product) {
            sum = quotient(sum, &by->divisor, !is_unsigned);
        } else if (is_unsigned) {
            sum = vrmulhq_u16(sum, reciprocal);
        } else {
            sum = (uint16x8_t)vqrdmulhq_s16((int16x8_t)sum, (int16x8_t)reciprocal);
        }
        vstrbq_p_u16(y, sum, some);
        line += 8;
        y += 8;
    }
}

#define CLIP(type)                                                                                                     \
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"                                                                      \
                     "1: vldrb.8 %q[t], [%[y]]\n"                                                                      \
                     "vmax." type " %q[t], %q[t], %q[low]\n"                                                           \
                     "vmin." type " %q[t], %q[t], %q[high]\n"                                                          \
                     "vstrb.8 %q[t], [%[y]], #16\n"                                                                    \
                     "letp lr, 1b\n"                                                                                   \
                     "2:"                                                                                              \
                     : [y] "+l"(y), [t] "=&w"(t)                                                                       \
                     : [count] "r"(count), [low] "w"(low), [high] "w"(high)                                            \
                     : "lr", "memory")

MVE_INLINE void pool_clip(uint8_t *y, int32_t count, const struct fl_pool_rows *p, int is_unsigned)
{
    const uint8x16_t low = vdupq_n_u8((uint8_t)p->low), high = vdupq_n_u8((uint8_t)p->high);
    uint8x16_t t;
    if (is_unsigned) {
        CLIP("u8");
    } else {
        CLIP("s8");
    }
}

#include "pool_rows_image.h"

void mve_max_rows_s8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_max_rows(x, y, line, fields, 0);
}

void mve_max_rows_u8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_max_rows(x, y, line, fields, 1);
}

void mve_avg_rows_s8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_average_rows(x, y, line, fields, 0);
}

void mve_avg_rows_u8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_average_rows(x, y, line, fields, 1);
}
