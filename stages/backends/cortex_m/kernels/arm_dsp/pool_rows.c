/* Pooling by rows (include/pool_rows.h): four maxima in a word, or four sums in two words of 16-bit lanes, at a time. */
#include "pool_rows.h"

#include "arm_dsp_pool_rows.h"
#include "bytes_order.h"
#include "sums.h"

/* Up to three rows. `b` may be the same row as `a`, and with two taps `c` is not used. */
struct rows3 {
    const uint8_t *a, *b, *c;
};

DSP_INLINE uint32_t largest(const struct rows3 *r, int32_t i, int taps, int is_unsigned)
{
    const uint32_t two = larger(dsp_load(r->a + i), dsp_load(r->b + i), is_unsigned);
    return taps == 2 ? two : larger(two, dsp_load(r->c + i), is_unsigned);
}

/* `taps` is 2 or 3. The bytes after the last whole word are computed as the last four bytes again, or one by one. `to` may be a row of the
 * input.
 */
DSP_INLINE void largest_of(uint8_t *to, struct rows3 r, int32_t count, int taps, int is_unsigned)
{
    int32_t left = count;
    for (; left >= 8; left -= 8) {
        const uint32_t first = largest(&r, 0, taps, is_unsigned), second = largest(&r, 4, taps, is_unsigned);
        dsp_store(to, first);
        dsp_store(to + 4, second);
        r.a += 8, r.b += 8, r.c += 8;
        to += 8;
    }
    if (left >= 4) {
        dsp_store(to, largest(&r, 0, taps, is_unsigned));
        r.a += 4, r.b += 4, r.c += 4;
        to += 4;
        left -= 4;
    }
    if (left > 0 && count >= 4) {
        dsp_store(to + left - 4, largest(&r, left - 4, taps, is_unsigned));
        return;
    }
    for (int32_t i = 0; i < left; i++) {
        const int32_t a = sums_element(r.a + i, is_unsigned), b = sums_element(r.b + i, is_unsigned);
        const int32_t two = a > b ? a : b, c = taps == 2 ? two : sums_element(r.c + i, is_unsigned);
        to[i] = (uint8_t)(two > c ? two : c);
    }
}

/* The first two or three taps at once, then pairs of taps with the previous result. */
DSP_INLINE void maxima(uint8_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count, int is_unsigned)
{
    struct rows3 r = {from, from + (taps > 1 ? step : 0), from + 2 * step};
    if (taps < 3) {
        largest_of(to, r, count, 2, is_unsigned);
        return;
    }
    const int32_t pairs = (taps - 1) / 2, is_even = taps % 2 == 0;
    for (int32_t pair = 0; pair < pairs; pair++) {
        largest_of(to, r, count, 3, is_unsigned);
        r = (struct rows3){to, r.c + step, r.c + 2 * step};
    }
    if (is_even) {
        largest_of(to, r, count, 2, is_unsigned);
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

DSP_INLINE void pool_maxima(uint8_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count, int is_unsigned)
{
    (is_unsigned ? maxima_u8 : maxima_s8)(to, from, taps, step, count);
}

DSP_INLINE void pool_strided(uint8_t *y, const uint8_t *line, const struct fl_pool_rows *p, int is_unsigned)
{
    for (int32_t left = p->out_width; left > 0; left--) {
        pool_maxima(y, line, p->kernel_width, p->channels, p->channels, is_unsigned);
        y += p->channels;
        line += p->stride_x * p->channels;
    }
}

/* Sums of a column's bytes in their order: bytes 0 and 1 in the first word. `taps` is 2 to 4, or 0 for `more` of them. */
DSP_INLINE void sum_word(int16_t *to, const uint8_t *from, int taps, int32_t more, int32_t step, int is_unsigned)
{
    uint32_t even = 0, odd = 0;
    for (; taps == 0 && more > 0; more--) {
        sums_add(&even, &odd, dsp_load(from), is_unsigned);
        from += step;
    }
    if (taps != 0) {
        const uint32_t bytes = dsp_load(from);
        even = is_unsigned ? dsp_low_bytes(bytes) : dsp_even(bytes);
        odd = is_unsigned ? dsp_low_bytes(bytes >> 8) : dsp_odd(bytes);
        sums_add(&even, &odd, dsp_load(from + step), is_unsigned);
    }
    if (taps >= 3) {
        sums_add(&even, &odd, dsp_load(from + 2 * step), is_unsigned);
    }
    if (taps == 4) {
        sums_add(&even, &odd, dsp_load(from + 3 * step), is_unsigned);
    }
    dsp_store(to, dsp_low_halves(even, odd));
    dsp_store(to + 2, dsp_high_halves(even, odd));
}

DSP_INLINE void sums_of(int16_t *to, const uint8_t *from, int taps, int32_t more, int32_t step, int32_t count, int is_unsigned)
{
    for (; count >= 4; count -= 4) {
        sum_word(to, from, taps, more, step, is_unsigned);
        to += 4;
        from += 4;
    }
    for (; count > 0; count--) {
        int32_t sum = 0;
        for (int32_t tap = 0; tap < more; tap++) {
            sum += sums_element(from + tap * step, is_unsigned);
        }
        *to++ = (int16_t)sum;
        from++;
    }
}

DSP_INLINE void pool_sums(int16_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count, int is_unsigned)
{
    if (taps == 2) {
        sums_of(to, from, 2, 2, step, count, is_unsigned);
    } else if (taps == 3) {
        sums_of(to, from, 3, 3, step, count, is_unsigned);
    } else if (taps == 4) {
        sums_of(to, from, 4, 4, step, count, is_unsigned);
    } else {
        sums_of(to, from, 0, taps, step, count, is_unsigned);
    }
}

/* The mean of a sum s is ((s * reciprocal >> 16) + half) >> FRACTION.
 *
 * The reciprocal is 2^30 / elements and up to 1 more. So the product is 2^14 * s / elements, and up to 1/2 further from zero,
 * because |s| < 2^15; it is rounded down. If the mean is not a half, the product differs from a half's by at least 2^14 / 510 = 32. If
 * it is a half, the product is not below that half for positive s, and below it for negative s: halves go away from zero.
 *
 * For uint8, 128 per element is subtracted from sums and added to means again. So halves have to go up: `half` is 2 larger. */
enum { FRACTION = 14 };

struct pool_mean {
    int32_t reciprocal, half;
    uint32_t middle; /* 128 for each element, in both halves; 0 of int8 */
};

DSP_INLINE int32_t mean_of_lower(const struct pool_mean *by, uint32_t sums)
{
    int32_t result;
    __asm__("smlawb %0, %1, %2, %3" : "=r"(result) : "r"(by->reciprocal), "r"(sums), "r"(by->half));
    return result;
}

DSP_INLINE int32_t mean_of_upper(const struct pool_mean *by, uint32_t sums)
{
    int32_t result;
    __asm__("smlawt %0, %1, %2, %3" : "=r"(result) : "r"(by->reciprocal), "r"(sums), "r"(by->half));
    return result;
}

/* a >> FRACTION in the lower half, b >> FRACTION in the upper one. */
DSP_INLINE uint32_t whole_halves(int32_t a, int32_t b)
{
    uint32_t halves;
    __asm__("pkhbt %0, %1, %2, lsl #2" : "=r"(halves) : "r"(a >> FRACTION), "r"(b));
    return halves;
}

/* Two sums of neighbours: `taps` is 2, 3, or 0 for `more` of them. */
DSP_INLINE uint32_t sums_along(const int16_t *from, int taps, int32_t more, int32_t step, const struct pool_mean *by, int is_unsigned)
{
    uint32_t sum = dsp_load(from);
    for (; taps == 0 && more > 1; more--) {
        from += step;
        sum = dsp_sadd16(sum, dsp_load(from));
    }
    if (taps != 0) {
        sum = dsp_sadd16(sum, dsp_load(from + step));
    }
    if (taps == 3) {
        sum = dsp_sadd16(sum, dsp_load(from + 2 * step));
    }
    if (is_unsigned) {
        __asm__("ssub16 %0, %0, %1" : "+r"(sum) : "r"(by->middle));
    }
    return sum;
}

/* Four means of bytes 0 and 1, 2 and 3. */
DSP_INLINE uint32_t four_means(const int16_t *from, int taps, int32_t more, int32_t step, const struct pool_mean *by, int is_unsigned)
{
    const uint32_t first = sums_along(from, taps, more, step, by, is_unsigned);
    const uint32_t second = sums_along(from + 2, taps, more, step, by, is_unsigned);
    const uint32_t even = dsp_low_bytes(whole_halves(mean_of_lower(by, first), mean_of_lower(by, second)));
    const uint32_t odd = dsp_low_bytes(whole_halves(mean_of_upper(by, first), mean_of_upper(by, second)));
    return (even | odd << 8) ^ (is_unsigned ? 0x80808080u : 0);
}

DSP_INLINE void means_of(uint8_t *y, const int16_t *line, int32_t count, int taps, int32_t more, int32_t step, const struct pool_mean *by,
                         int is_unsigned)
{
    int32_t left = count;
    for (; left >= 4; left -= 4) {
        dsp_store(y, four_means(line, taps, more, step, by, is_unsigned));
        line += 4;
        y += 4;
    }
    if (left > 0 && count >= 4) {
        dsp_store(y + left - 4, four_means(line + left - 4, taps, more, step, by, is_unsigned));
        return;
    }
    for (; left > 0; left--) {
        int32_t sum = 0;
        for (int32_t tap = 0; tap < more; tap++) {
            sum += is_unsigned ? (uint16_t)line[tap * step] : line[tap * step];
        }
        const int32_t mean = mean_of_lower(by, (uint32_t)(sum - (int32_t)(by->middle & 0xffff))) >> FRACTION;
        *y++ = (uint8_t)(mean ^ (is_unsigned ? 0x80 : 0));
        line++;
    }
}

DSP_INLINE struct pool_mean pool_mean_of(int32_t elements, int is_unsigned)
{
    const uint32_t middle = is_unsigned ? 128 * (uint32_t)elements : 0;
    const int32_t half = (1 << (FRACTION - 1)) + (is_unsigned ? 2 : 0);
    return (struct pool_mean){(1 << 30) / elements + 1, half, middle | middle << 16};
}

DSP_INLINE void pool_means(uint8_t *y, const int16_t *line, int32_t count, const struct pool_mean *by, const struct fl_pool_rows *p,
                           int is_unsigned)
{
    if (p->kernel_width == 2) {
        means_of(y, line, count, 2, 2, p->channels, by, is_unsigned);
    } else if (p->kernel_width == 3) {
        means_of(y, line, count, 3, 3, p->channels, by, is_unsigned);
    } else {
        means_of(y, line, count, 0, p->kernel_width, p->channels, by, is_unsigned);
    }
}

DSP_INLINE void pool_clip(uint8_t *y, int32_t count, const struct fl_pool_rows *p, int is_unsigned)
{
    const uint32_t low = (uint8_t)p->low * 0x01010101u, high = (uint8_t)p->high * 0x01010101u;
    int32_t left = count;
    for (; left >= 4; left -= 4) {
        dsp_store(y, smaller(larger(dsp_load(y), low, is_unsigned), high, is_unsigned));
        y += 4;
    }
    for (; left > 0; left--) {
        *y = (uint8_t)smaller(larger(*y, (uint8_t)p->low, is_unsigned), (uint8_t)p->high, is_unsigned);
        y++;
    }
}

#include "pool_rows_image.h"

void arm_dsp_max_rows_s8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_max_rows(x, y, line, fields, 0);
}

void arm_dsp_max_rows_u8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_max_rows(x, y, line, fields, 1);
}

void arm_dsp_avg_rows_s8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_average_rows(x, y, line, fields, 0);
}

void arm_dsp_avg_rows_u8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_average_rows(x, y, line, fields, 1);
}
