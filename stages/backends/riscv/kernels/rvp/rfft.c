/* RFFT of int16, one or two complex numbers in a register. */
#include "rvp_intrinsics.h"
#include "signal.h"

typedef rvp_word fft_word;
#define FFT_LANES (__riscv_xlen / 32)

#define fft_add rvp_add16
#define fft_sub rvp_sub16
#define fft_mean rvp_radd16
#define fft_mean_minus rvp_rsub16

RVP_INLINE rvp_word fft_odd(rvp_word a, rvp_word b)
{
    return rvp_select_bits(rvp_splat32(0xffff), a, b);
}

RVP_INLINE rvp_word fft_conj(rvp_word z)
{
    return fft_odd(z, rvp_sub16(0, z));
}

RVP_INLINE void fft_turns(rvp_word z, rvp_word w, rvp_word *plus, rvp_word *minus)
{
    const rvp_word swapped = rvp_pkbt16(w, w), sum = rvp_add16(z, swapped), difference = rvp_sub16(z, swapped);
    *plus = rvp_pktb16(sum, difference);
    *minus = rvp_pktb16(difference, sum);
}

/* (z * 8191 + 2^14) >> 15 = (floor(z - z / 2^13) + 2) >> 2, and z - z / 2^13 = z * 32764 / 2^15 */
RVP_INLINE rvp_word fft_quarter(rvp_word z)
{
    return rvp_srai16_u_2(rvp_khm16(z, rvp_splat16(32764)));
}

/* (z * 16383 + 2^14) >> 15 = (floor(z - z / 2^14) + 1) >> 1 */
RVP_INLINE rvp_word fft_half(rvp_word z)
{
    return rvp_srai16_u_1(rvp_khm16(z, rvp_splat16(32766)));
}

RVP_INLINE rvp_word fft_mul(rvp_word z, rvp_word w)
{
    return rvp_pkbb16(rvp_srai32_u_15(rvp_kmxda(z, w)), rvp_srai32_u_15(rvp_smdrs(z, w)));
}

#if FFT_LANES == 2
#define fft_low rvp_pack
#define fft_high rvp_packu
#define fft_load2(p, q) rvp_pack(*(p), *(q))
#define fft_store2(p, q, z) (*(p) = (uint32_t)(z), *(q) = (uint32_t)((z) >> 32))
#endif

#include "rfft16_image.h"

void rvp_rfft(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *padded, int32_t frames,
              int32_t size, int32_t numbers)
{
    fft_frames(x, places, factors, y, padded, frames, size, numbers);
}

#if FFT_LANES == 2
void rvp_rfft_apart(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *scratch, int32_t frames,
                    int32_t size, int32_t numbers, int32_t padded)
{
    fft_number *const z = scratch, *to = (fft_number *)y;
    for (; frames > 0; frames--, x += size) {
        fft_frames(x, places, factors, (int16_t *)z, padded ? z + numbers + 2 : z, 1, size, numbers);
        for (const fft_number *from = z; from != z + numbers + 1;)
            *to++ = *from++;
    }
}
#endif
