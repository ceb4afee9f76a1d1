/* TFLM's signal operators on channels, four at a time, with tail predication. */
#include "signal_channels.h"

#include "bytes.h"

/* Shift 64-bit numbers, each in two words, right by 0 to 63 and return the low words. VSHL by a negative amount shifts right; by 32 or
 * more it gives 0. */
MVE_INLINE uint32x4_t shifted(uint32x4_t low, uint32x4_t high, int32_t shift)
{
    return vorrq_u32(vshlq_r_u32(low, -shift), vshlq_r_u32(high, 32 - shift));
}

MVE_INLINE uint32x4_t alternating(int32_t even, int32_t odd)
{
    return (uint32x4_t)vsetq_lane_s32(odd, vsetq_lane_s32(odd, vdupq_n_s32(even), 1), 3);
}

void mve_signal_noise_estimate(const uint32_t *x, uint32_t *noise, uint32_t *y, const int32_t *parameters)
{
    const int32_t frames = parameters[0], channels = parameters[1], smoothing_bits = parameters[6];
    const int32_t bits = parameters[7], clamping = parameters[8];
    const uint32x4_t smoothing = alternating(parameters[2], parameters[4]), rest = alternating(parameters[3], parameters[5]);
    for (int32_t frame = 0; frame < frames; frame++, x += channels, y += channels) {
        for (int32_t c = 0; c < channels; c += 4) {
            const mve_pred16_t inside = vctp32q((uint32_t)(channels - c));
            const uint32x4_t signal = vshlq_r_u32(vldrwq_z_u32(x + c, inside), smoothing_bits);
            const uint32x4_t before = vldrwq_z_u32(noise + c, inside), part = vmulq_u32(before, rest);
            const uint32x4_t low = vaddq_u32(vmulq_u32(signal, smoothing), part);
            const uint32x4_t high = vaddq_u32(vmulhq_u32(signal, smoothing), vmulhq_u32(before, rest));
            const uint32x4_t carried = vaddq_m_n_u32(high, high, 1, vcmphiq_u32(part, low));
            const uint32x4_t estimate = shifted(low, carried, bits), result = clamping ? vminq_u32(estimate, signal) : estimate;
            vstrwq_p_u32(noise + c, result, inside);
            vstrwq_p_u32(y + c, result, inside);
        }
    }
}

void mve_signal_subtract_noise(const uint32_t *x, const uint32_t *noise, uint32_t *y, int32_t count, int32_t smoothing_bits, int32_t bits,
                               int32_t least)
{
    const uint32x4_t factor = vdupq_n_u32((uint32_t)least);
    for (; count > 0; count -= 4, x += 4, noise += 4, y += 4) {
        const mve_pred16_t inside = vctp32q((uint32_t)count);
        const uint32x4_t number = vldrwq_z_u32(x, inside);
        const uint32x4_t share = shifted(vmulq_u32(number, factor), vmulhq_u32(number, factor), bits);
        const uint32x4_t rest = vqsubq_u32(vshlq_r_u32(number, smoothing_bits), vldrwq_z_u32(noise, inside));
        vstrwq_p_u32(y, vmaxq_u32(vshlq_r_u32(rest, -smoothing_bits), share), inside);
    }
}

/* The entry of 0, 1 and 2 is that number, and their place is 0. */
MVE_INLINE uint32x4_t gains_of(uint32x4_t noise, const int16_t *gains)
{
    const uint32x4_t zeros = vclzq_u32(noise);
    const int32x4_t octave = vmulq_n_s32(vsubq_s32(vdupq_n_s32(32), (int32x4_t)zeros), 4);
    const int32x4_t small = (int32x4_t)vminq_u32(noise, vdupq_n_u32(1));
    const uint32x4_t entry = (uint32x4_t)vmaxq_s32(vsubq_n_s32(octave, 6), small);
    /* the 10 bits below the highest set bit */
    const int32x4_t place = (int32x4_t)vshrq_n_u32(vshlq_u32(noise, (int32x4_t)vaddq_n_u32(zeros, 1)), 22);
    const int32x4_t curve = vshrq_n_s32(vmulq_s32(vldrhq_gather_shifted_offset_s32(gains + 2, entry), place), 5);
    const int32x4_t slope = vaddq_s32(curve, vshlq_n_s32(vldrhq_gather_shifted_offset_s32(gains + 1, entry), 5));
    const int32x4_t risen = vshrq_n_s32(vaddq_n_s32(vmulq_s32(slope, place), 1 << 14), 15);
    const int32x4_t sum = vaddq_s32(risen, vldrhq_gather_shifted_offset_s32(gains, entry));
    return (uint32x4_t)vmovlbq_s16((int16x8_t)sum);
}

void mve_signal_pcan(const uint32_t *x, const uint32_t *noise, const int16_t *gains, uint32_t *y, int32_t count, int32_t snr_shift)
{
    for (; count > 0; count -= 4, x += 4, noise += 4, y += 4) {
        const mve_pred16_t inside = vctp32q((uint32_t)count);
        const uint32x4_t number = vldrwq_z_u32(x, inside), gain = gains_of(vldrwq_z_u32(noise, inside), gains);
        const uint32x4_t ratio = shifted(vmulq_u32(number, gain), vmulhq_u32(number, gain), snr_shift);
        const uint32x4_t square = vshrq_n_u32(vmulq_u32(ratio, ratio), 20), above = vsubq_n_u32(vshrq_n_u32(ratio, 6), 1 << 6);
        const mve_pred16_t is_above = vcmphiq_n_u32(ratio, (2 << 12) - 1);
        vstrwq_p_u32(y, vpselq_u32(above, square, is_above), inside);
    }
}

void mve_signal_log(const uint32_t *x, const uint16_t *table, int16_t *y, int32_t count, int32_t scale, int32_t correction_bits)
{
    for (; count > 0; count -= 4, x += 4, y += 4) {
        const mve_pred16_t inside = vctp32q((uint32_t)count);
        const uint32x4_t value = vshlq_r_u32(vldrwq_z_u32(x, inside), correction_bits);
        const uint32x4_t zeros = vminq_u32(vclzq_u32(value), vdupq_n_u32(31)); /* 0 like 1: both results are 0 */
        /* the 16 bits below the highest set bit */
        const uint32x4_t place = vshrq_n_u32(vshlq_u32(value, (int32x4_t)vaddq_n_u32(zeros, 1)), 16);
        const uint32x4_t segment = vshrq_n_u32(place, 9), within = vandq_u32(place, vdupq_n_u32(511));
        const uint32x4_t first = vldrhq_gather_shifted_offset_u32(table, segment);
        const uint32x4_t next = vldrhq_gather_shifted_offset_u32(table + 1, segment);
        const int32x4_t rise = vshrq_n_s32(vmulq_s32((int32x4_t)vsubq_u32(next, first), (int32x4_t)within), 16);
        const uint32x4_t octave = vshlq_n_u32(vsubq_u32(vdupq_n_u32(31), zeros), 16);
        const uint32x4_t binary = vaddq_u32(vaddq_u32(octave, place), vaddq_u32(first, (uint32x4_t)rise));
        /* (binary * 45426 + 2^15) >> 16; binary is at most 2^21 */
        const uint32x4_t natural = vrmulhq_u32(vshlq_n_u32(binary, 10), vdupq_n_u32(UINT32_C(45426) << 6));
        const uint32x4_t scaled = vshrq_n_u32(vaddq_n_u32(vmulq_n_u32(natural, (uint32_t)scale), 1 << 15), 16);
        vstrhq_p_s32(y, (int32x4_t)vminq_u32(scaled, vdupq_n_u32(INT16_MAX)), inside);
    }
}
