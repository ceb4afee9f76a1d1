/* Means of eight channels at a time. The pixels of a row are added in 16 bits, the rows in 32. */
#include "mean.h"

#include "bytes.h"

/* `count` > 0 pixels, `step` bytes apart: at most 255, so that 16 bits hold their sum, signed or unsigned like the elements. */
MVE_INLINE int16x8_t row_sum(const uint8_t *from, int32_t count, int32_t step, mve_pred16_t channels, int is_signed)
{
    int16x8_t sum = vdupq_n_s16(0), x;
    if (is_signed) {
        __asm__ volatile("vmsr p0, %[channels]\n"
                         "dls lr, %[count]\n"
                         "1: vpst\n"
                         "vldrbt.s16 %q[x], [%[from]]\n"
                         "vadd.i16 %q[sum], %q[sum], %q[x]\n"
                         "add %[from], %[from], %[step]\n"
                         "le lr, 1b\n"
                         : [sum] "+w"(sum), [x] "=&w"(x), [from] "+l"(from)
                         : [count] "r"(count), [step] "r"(step), [channels] "r"(channels)
                         : "lr", "p0", "memory");
    } else {
        __asm__ volatile("vmsr p0, %[channels]\n"
                         "dls lr, %[count]\n"
                         "1: vpst\n"
                         "vldrbt.u16 %q[x], [%[from]]\n"
                         "vadd.i16 %q[sum], %q[sum], %q[x]\n"
                         "add %[from], %[from], %[step]\n"
                         "le lr, 1b\n"
                         : [sum] "+w"(sum), [x] "=&w"(x), [from] "+l"(from)
                         : [count] "r"(count), [step] "r"(step), [channels] "r"(channels)
                         : "lr", "p0", "memory");
    }
    return sum;
}

/* A sum by (multiplier, shift) of the reference: two roundings. */
MVE_INLINE int32x4_t scale(int32x4_t sum, const struct mve_mean *v)
{
    const int32_t left = v->shift > 0 ? v->shift : 0, right = v->shift < 0 ? v->shift : 0;
    int32x4_t t = vqrdmulhq_n_s32(vshlq_r_s32(vsubq_n_s32(sum, v->offset), left), v->multiplier);
    t = vaddq_s32(t, vshrq_n_s32(vandq_s32(t, vdupq_n_s32(right)), 31));
    return vaddq_n_s32(vrshlq_n_s32(t, right), v->zero_point);
}

MVE_INLINE int32x4_t clip(int32x4_t x, const struct mve_mean *v)
{
    return vminq_s32(vmaxq_s32(x, vdupq_n_s32(v->low)), vdupq_n_s32(v->high));
}

MVE_INLINE void mean(const uint8_t *x, uint8_t *y, int32_t count, const struct mve_mean *v, int is_signed)
{
    for (int32_t i = 0; i < count; i += 8) {
        const mve_pred16_t channels = vctp16q((uint32_t)(count - i));
        const uint8_t *row = x + i;
        int32x4_t even = vdupq_n_s32(0), odd = vdupq_n_s32(0);
        for (int32_t rows = v->rows; rows > 0; rows--) {
            const int16x8_t sum = row_sum(row, v->columns, v->column_step, channels, is_signed);
            even = vaddq_s32(even, is_signed ? vmovlbq_s16(sum) : (int32x4_t)vmovlbq_u16((uint16x8_t)sum));
            odd = vaddq_s32(odd, is_signed ? vmovltq_s16(sum) : (int32x4_t)vmovltq_u16((uint16x8_t)sum));
            row += v->row_step;
        }
        const int16x8_t low = vmovnbq_s32(vdupq_n_s16(0), clip(scale(even, v), v));
        vstrbq_p_s16((int8_t *)y + i, vmovntq_s32(low, clip(scale(odd, v), v)), channels);
    }
}

void mve_mean_s8(const void *x, void *y, int32_t count, const int32_t *fields)
{
    mean(x, y, count, (const struct mve_mean *)fields, 1);
}

void mve_mean_u8(const void *x, void *y, int32_t count, const int32_t *fields)
{
    mean(x, y, count, (const struct mve_mean *)fields, 0);
}
