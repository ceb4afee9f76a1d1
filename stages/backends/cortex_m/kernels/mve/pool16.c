/* Pooling of int16, one pixel of a window at a time: maxima of 32 or 8 channels, sums of 8. */
#include "pool_window.h"

MVE_INLINE int16x8_t bounded(int16x8_t x, const struct mve_pool *p)
{
    return vminq_s16(vmaxq_s16(x, vdupq_n_s16((int16_t)p->low)), vdupq_n_s16((int16_t)p->high));
}

/* Channels in blocks of 32 and 8; the last block of 8 may overlap the block before it. */
MVE_INLINE void max_window(const struct window *w, int16_t *y, const struct mve_pool *p)
{
    const int16x8_t lowest = vdupq_n_s16(INT16_MIN);
    const int32_t channels = p->channels;
    int16x8_t x, z;
    int32_t c = 0;
    for (; c + 32 <= channels; c += 32) {
        int16x8_t m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
        const uint8_t *row = w->from + 2 * c;
        for (int32_t rows = w->rows; rows > 0; rows--) {
            const uint8_t *at = row;
            ROW("vldrh.16 %q[x], [%[at]]\n"
                "vldrh.16 %q[z], [%[at], #16]\n"
                "vmax.s16 %q[a], %q[a], %q[x]\n"
                "vldrh.16 %q[x], [%[at], #32]\n"
                "vmax.s16 %q[b], %q[b], %q[z]\n"
                "vldrh.16 %q[z], [%[at], #48]\n"
                "vmax.s16 %q[c], %q[c], %q[x]\n"
                "vmax.s16 %q[d], %q[d], %q[z]\n",
                [a] "+w"(m0), [b] "+w"(m1), [c] "+w"(m2), [d] "+w"(m3), [x] "=&w"(x), [z] "=&w"(z));
            row += w->row_step;
        }
        vstrhq_s16(y + c, bounded(m0, p));
        vstrhq_s16(y + c + 8, bounded(m1, p));
        vstrhq_s16(y + c + 16, bounded(m2, p));
        vstrhq_s16(y + c + 24, bounded(m3, p));
    }
    for (; c < channels; c += 8) {
        const mve_pred16_t some = vctp16q((uint32_t)channels);
        const int32_t first = c + 8 <= channels || channels < 8 ? c : channels - 8;
        const uint8_t *row = w->from + 2 * first;
        int16x8_t m = lowest;
        for (int32_t rows = w->rows; rows > 0; rows--) {
            const uint8_t *at = row;
            ROW_OF(some, "vldrht.16 %q[x], [%[at]]\nvmax.s16 %q[m], %q[m], %q[x]\n", [m] "+w"(m), [x] "=&w"(x));
            row += w->row_step;
        }
        vstrhq_p_s16(y + first, bounded(m, p), some);
    }
}

/* n / count of 32 bits as (n * multiplier >> 32) >> right, with multiplier = 2^(32 + right) / count rounded up: exact for all n below
 * 2^31 where 2^right < count <= 2^(right + 1) (Granlund and Montgomery 1994). */
struct divisor {
    uint32_t multiplier;
    int32_t count, right;
};

/* `count` is 2 to 32767. The quotient has 32 bits; each division gives 16 of them. */
MVE_INLINE struct divisor divisor_of(int32_t count)
{
    const int32_t right = 31 - __builtin_clz((uint32_t)count - 1);
    const uint32_t d = (uint32_t)count, power = UINT32_C(1) << (16 + right), high = power / d;
    return (struct divisor){(high << 16) + (((power - high * d) << 16) + d - 1) / d, count, right};
}

/* sum / count, halves away from zero. */
MVE_INLINE int32x4_t mean(int32x4_t sum, const struct divisor *d)
{
    const uint32x4_t n = vaddq_n_u32((uint32x4_t)vabsq_s32(sum), (uint32_t)d->count / 2);
    const uint32x4_t q = vshlq_r_u32(vmulhq_u32(n, vdupq_n_u32(d->multiplier)), -d->right);
    const int32x4_t sign = vshrq_n_s32(sum, 31);
    return vsubq_s32(veorq_s32((int32x4_t)q, sign), sign);
}

/* Channels in blocks of 8; the last block may overlap the one before it. */
MVE_INLINE void average_window(const struct window *w, int16_t *y, const struct divisor *d, const struct mve_pool *p)
{
    const int32_t channels = p->channels;
    int32x4_t x, z;
    if (channels < 8) {
        const mve_pred16_t some = vctp16q((uint32_t)channels);
        const uint8_t *row = w->from;
        int32x4_t even = vdupq_n_s32(0), odd = even;
        for (int32_t rows = w->rows; rows > 0; rows--) {
            const uint8_t *at = row;
            ROW_OF(some,
                   "vldrht.16 %q[x], [%[at]]\n"
                   "vmovlb.s16 %q[z], %q[x]\n"
                   "vmovlt.s16 %q[x], %q[x]\n"
                   "vadd.i32 %q[a], %q[a], %q[z]\n"
                   "vadd.i32 %q[b], %q[b], %q[x]\n",
                   [a] "+w"(even), [b] "+w"(odd), [x] "=&w"(x), [z] "=&w"(z));
            row += w->row_step;
        }
        const int16x8_t means = vmovntq_s32(vreinterpretq_s16_s32(mean(even, d)), mean(odd, d));
        vstrhq_p_s16(y, bounded(means, p), some);
    }
    for (int32_t c = 0; c < channels && channels >= 8; c += 8) {
        const int32_t first = c + 8 <= channels ? c : channels - 8;
        const uint8_t *row = w->from + 2 * first;
        int32x4_t a = vdupq_n_s32(0), b = a;
        for (int32_t rows = w->rows; rows > 0; rows--) {
            const uint8_t *at = row;
            ROW("vldrh.s32 %q[x], [%[at]]\n"
                "vldrh.s32 %q[z], [%[at], #8]\n"
                "vadd.i32 %q[a], %q[a], %q[x]\n"
                "vadd.i32 %q[b], %q[b], %q[z]\n",
                [a] "+w"(a), [b] "+w"(b), [x] "=&w"(x), [z] "=&w"(z));
            row += w->row_step;
        }
        const int32x4_t low = vdupq_n_s32(p->low), high = vdupq_n_s32(p->high);
        vstrhq_s32(y + first, vminq_s32(vmaxq_s32(mean(a, d), low), high));
        vstrhq_s32(y + first + 4, vminq_s32(vmaxq_s32(mean(b, d), low), high));
    }
}

void mve_max_pool_s16(const void *x, void *y, const int32_t *fields)
{
    const struct mve_pool p = *(const struct mve_pool *)fields; /* local copy: y may alias it */
    int16_t *to = y;
    for (int32_t oy = 0; oy < p.out_height; oy++) {
        for (int32_t ox = 0; ox < p.out_width; ox++) {
            const struct window w = window_at(x, oy, ox, &p, 2);
            max_window(&w, to, &p);
            to += p.channels;
        }
    }
}

void mve_avg_pool_s16(const void *x, void *y, const int32_t *fields)
{
    const struct mve_pool p = *(const struct mve_pool *)fields;
    struct divisor d = {0, 0, 0};
    int16_t *to = y;
    for (int32_t oy = 0; oy < p.out_height; oy++) {
        for (int32_t ox = 0; ox < p.out_width; ox++) {
            struct window w = window_at(x, oy, ox, &p, 2);
            if (w.rows * w.columns == 1) {
                w.columns = 2; /* counts the same pixel twice */
                w.step = 0;
            }
            if (w.rows * w.columns != d.count) {
                d = divisor_of(w.rows * w.columns);
            }
            average_window(&w, to, &d, &p);
            to += p.channels;
        }
    }
}
