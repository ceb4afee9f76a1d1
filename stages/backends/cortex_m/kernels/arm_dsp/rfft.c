/* RFFT of int16, a complex number in a register. */
#include "dsp.h"
#include "signal.h"

typedef uint32_t fft_word;
#define FFT_LANES 1

#define BINARY(name, instruction)                                                     \
    DSP_INLINE uint32_t name(uint32_t a, uint32_t b)                                  \
    {                                                                                 \
        uint32_t result;                                                              \
        __asm__(instruction " %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));            \
        return result;                                                                \
    }
#define TERNARY(name, instruction)                                                    \
    DSP_INLINE uint32_t name(uint32_t a, uint32_t b, uint32_t c)                      \
    {                                                                                 \
        uint32_t result;                                                              \
        __asm__(instruction " %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(c)); \
        return result;                                                                \
    }

BINARY(fft_add, "sadd16")
BINARY(fft_sub, "ssub16")
BINARY(fft_mean, "shadd16")
BINARY(fft_mean_minus, "shsub16")
BINARY(plus_j, "sasx")
BINARY(minus_j, "ssax")
TERNARY(low_product, "smlabb")  /* c + low half of a * low half of b */
TERNARY(high_product, "smlatb") /* c + upper half of a * low half of b */
TERNARY(difference, "smlsd")    /* c + the product of the low halves - the product of the upper halves */
TERNARY(crossed, "smladx")      /* c + low half of a * upper half of b + upper half of a * low half of b */

/* Return the low half of a and the upper half of b. */
DSP_INLINE uint32_t fft_odd(uint32_t a, uint32_t b)
{
    uint32_t halves;
    __asm__("pkhbt %0, %1, %2" : "=r"(halves) : "r"(a), "r"(b));
    return halves;
}

DSP_INLINE void fft_turns(uint32_t z, uint32_t w, uint32_t *plus, uint32_t *minus)
{
    *plus = plus_j(z, w);
    *minus = minus_j(z, w);
}

DSP_INLINE uint32_t fft_conj(uint32_t z)
{
    return fft_odd(z, fft_sub(0, z));
}

/* (part * factor / 2 + 2^14) >> 15 */
DSP_INLINE uint32_t scaled(uint32_t z, uint32_t factor)
{
    return dsp_high_halves(low_product(z, factor, 1 << 15), high_product(z, factor, 1 << 15));
}

DSP_INLINE uint32_t fft_quarter(uint32_t z)
{
    return scaled(z, 2 * (INT16_MAX / 4));
}

DSP_INLINE uint32_t fft_half(uint32_t z)
{
    return scaled(z, 2 * (INT16_MAX / 2));
}

DSP_INLINE uint32_t fft_mul(uint32_t z, uint32_t w)
{
    const int32_t real = (int32_t)difference(z, w, 1 << 14) >> 15;
    uint32_t result;
    __asm__("pkhbt %0, %1, %2, lsl #1" : "=r"(result) : "r"(real), "r"(crossed(z, w, 1 << 14)));
    return result;
}

/* Volatile: loads before their use would need more registers than the core has. */
DSP_INLINE uint32_t next_word(const uint32_t **from)
{
    const uint32_t *at = *from;
    uint32_t word;
    __asm__ volatile("ldr %0, [%1], #4" : "=r"(word), "+r"(at) : : "memory");
    *from = at;
    return word;
}
#define FFT_NEXT(w) next_word((const uint32_t **)(w))

#include "rfft16_image.h"

void arm_dsp_rfft(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *padded, int32_t frames,
                  int32_t size, int32_t numbers)
{
    fft_frames(x, places, factors, y, padded, frames, size, numbers);
}
