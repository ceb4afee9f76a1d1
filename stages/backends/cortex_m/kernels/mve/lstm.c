/* Integer LSTM: sixteen elements of a row times the weights of four gates. The four sums are requantized as one vector. The
 * functions of eight cells are computed at a time, in 16 bits.
 */
#include "lstm.h"

#include "four_rows.h"

#define LSTM_CHUNK 16
#define LSTM_WIDE 1
#define lstm_row mve_row
#define lstm_sums mve_four_rows
#define LSTM_GATES gates_of
#define LSTM_CELLS cells_of

/* The four gates of each cell. */
MVE_INLINE void gates_of(const int32_t *sums, const int32_t *scales, int16_t *gates, int32_t count, int32_t units)
{
    const int32x4_t ahead = vld1q_s32(scales), ahead_shift = vld1q_s32(scales + 4);
    const int32x4_t back = vld1q_s32(scales + 8), back_shift = vld1q_s32(scales + 12);
    const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)units);
    for (int32_t i = 0; i < count; i++) {
        const int32x4_t first = mve_to_int16(mve_scaled(vld1q_s32(sums), ahead, ahead_shift));
        const int32x4_t second = mve_scaled(vld1q_s32(sums + 4), back, back_shift);
        vstrhq_scatter_shifted_offset_s32(gates + i, places, mve_to_int16(vaddq_s32(first, second)));
        sums += 8;
    }
}

/* As s16_exponential and the rest of sigmoid16.h; vqrdmulh is the product of Q0.15. `less` is -|x|. */
MVE_INLINE int16x8_t exponential(int16x8_t less, int32_t integer_bits)
{
    static const int16_t powers[] = {25520, 19875, 12055, 4435, 600, 11, 0};
    const int16_t quarter = (int16_t)(1 << (13 - integer_bits));
    const int16x8_t part = vsubq_n_s16(vandq_s16(less, vdupq_n_s16((int16_t)(quarter - 1))), quarter);
    const int16x8_t t = vaddq_n_s16(vshlq_r_s16(part, integer_bits), 1 << 12);
    const int16x8_t t2 = vqrdmulhq_s16(t, t);
    const int16x8_t sum = vaddq_s16(vrshrq_n_s16(vqrdmulhq_s16(t2, t2), 2), vqrdmulhq_s16(t2, t));
    const int16x8_t inner = vrhaddq_s16(vqrdmulhq_n_s16(sum, 10923), t2);
    int16x8_t y = vqaddq_n_s16(vqrdmulhq_n_s16(vaddq_s16(t, inner), 28918), 28918);
    const int16x8_t rest = vsubq_s16(part, less);
#pragma GCC unroll 7
    for (int32_t i = 0; i < 7; i++) {
        if (i < integer_bits + 2) {
            const int16_t bit = (int16_t)(1 << (13 - integer_bits + i));
            const mve_pred16_t there = vcmpneq_n_s16(vandq_s16(rest, vdupq_n_s16(bit)), 0);
            y = vqrdmulhq_m_s16(y, y, vdupq_n_s16(powers[i]), there);
        }
    }
    if (integer_bits > 5) {
        y = vpselq_s16(vdupq_n_s16(0), y, vcmpltq_n_s16(less, (int16_t)-(32 << (15 - integer_bits))));
    }
    return vpselq_s16(vdupq_n_s16(INT16_MAX), y, vcmpeqq_n_s16(less, 0));
}

MVE_INLINE int16x8_t reciprocal(int16x8_t a)
{
    const int16x8_t half = vaddq_n_s16(vshrq_n_s16(a, 1), 1 << 14);
    int16x8_t r = vaddq_n_s16(vqrdmulhq_n_s16(half, -15420), 23130);
#pragma GCC unroll 3
    for (int32_t step = 0; step < 3; step++) {
        const int16x8_t left = vsubq_s16(vdupq_n_s16(1 << 13), vqrdmulhq_s16(half, r));
        r = vaddq_s16(r, vshlq_n_s16(vqrdmulhq_s16(r, left), 2));
    }
    return r;
}

MVE_INLINE int16x8_t below_zero(int16x8_t x)
{
    return vminq_s16(x, vnegq_s16(x)); /* for -2^15 both are -2^15 */
}

MVE_INLINE int16x8_t sigmoid(int16x8_t x)
{
    const int16x8_t r = reciprocal(exponential(below_zero(x), 3));
    const int16x8_t y = vqaddq_s16(r, r);
    const int16x8_t other = vsubq_s16(vdupq_n_s16(INT16_MAX), y);
    const int16x8_t found = vpselq_s16(y, other, vcmpgtq_n_s16(x, 0));
    return vpselq_s16(vdupq_n_s16(1 << 14), found, vcmpeqq_n_s16(x, 0));
}

MVE_INLINE int16x8_t hyperbolic_tangent(int16x8_t x, int32_t integer_bits)
{
    const int16x8_t r = reciprocal(exponential(below_zero(x), integer_bits + 1));
    const int16x8_t y = vqshlq_n_s16(vsubq_n_s16(r, 1 << 13), 2);
    const int16x8_t found = vpselq_s16(y, vnegq_s16(y), vcmpgtq_n_s16(x, 0));
    return vpselq_s16(vdupq_n_s16(0), found, vcmpeqq_n_s16(x, 0));
}

struct fl_lstm;
MVE_INLINE void cells_of(int16_t *gates, int16_t *cell, int8_t *y, const struct fl_lstm *p);

#include "lstm_image.h"

/* kept / 2^15 + entering / 2^(15 + bits) */
MVE_INLINE int32x4_t sum_of(int32x4_t kept, int32x4_t entering, int32_t bits)
{
    return vaddq_s32(mve_shifted_right(kept, vdupq_n_s32(-15)), mve_shifted_right(entering, vdupq_n_s32(-15 - bits)));
}

MVE_INLINE void cells_of(int16_t *gates, int16_t *cell, int8_t *y, const struct fl_lstm *p)
{
    const int32_t units = p->units, bits = p->cell_bits;
    const int16x8_t high = vdupq_n_s16((int16_t)(p->clip < INT16_MAX ? p->clip : INT16_MAX)), low = vdupq_n_s16((int16_t)-p->clip);
    const int32x4_t multiplier = vdupq_n_s32(p->multiplier), shift = vdupq_n_s32(p->shift);
    for (int32_t u = 0; u < units; u += 8) {
        const mve_pred16_t there = vctp16q((uint32_t)(units - u));
        const int16x8_t in = sigmoid(vldrhq_z_s16(gates + u, there));
        const int16x8_t forget = sigmoid(vldrhq_z_s16(gates + units + u, there));
        const int16x8_t given = hyperbolic_tangent(vldrhq_z_s16(gates + 2 * units + u, there), 3);
        const int16x8_t before = vldrhq_z_s16(cell + u, there);
        const int32x4_t even = sum_of(vmullbq_int_s16(before, forget), vmullbq_int_s16(in, given), bits);
        const int32x4_t odd = sum_of(vmulltq_int_s16(before, forget), vmulltq_int_s16(in, given), bits);
        int16x8_t now = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
        now = vminq_s16(vmaxq_s16(now, low), high);
        vstrhq_p_s16(cell + u, now, there);
        const int16x8_t out = sigmoid(vldrhq_z_s16(gates + 3 * units + u, there)), size = hyperbolic_tangent(now, bits);
        const int32x4_t first = vaddq_n_s32(mve_scaled(vmullbq_int_s16(out, size), multiplier, shift), p->zero_point);
        const int32x4_t second = vaddq_n_s32(mve_scaled(vmulltq_int_s16(out, size), multiplier, shift), p->zero_point);
        int16x8_t result = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), first), second);
        result = vminq_s16(vmaxq_s16(result, vdupq_n_s16(INT8_MIN)), vdupq_n_s16(INT8_MAX));
        vstrbq_p_s16(y + u, result, there);
    }
}

void mve_lstm_s8(const int8_t *x, const int8_t *input, const int8_t *recurrent, const int32_t *bias, const int32_t *scales,
                 int8_t *hidden, int16_t *cell, int8_t *y, int32_t *scratch, const void *parameters)
{
    lstm_step(x, input, recurrent, bias, scales, hidden, cell, y, scratch, parameters);
}
