/* Instructions of Arm's DSP extension that C has no operator for. */
#pragma once

#include <stdint.h>

#define DSP_INLINE static inline __attribute__((always_inline))

/* Four bytes from any address. */
DSP_INLINE uint32_t dsp_load(const void *from)
{
    uint32_t word;
    __builtin_memcpy(&word, from, 4);
    return word;
}

DSP_INLINE void dsp_store(void *to, uint32_t word)
{
    __builtin_memcpy(to, &word, 4);
}

/* Bytes 0 and 2 as int16. */
DSP_INLINE uint32_t dsp_even(uint32_t bytes)
{
    uint32_t halves;
    __asm__("sxtb16 %0, %1" : "=r"(halves) : "r"(bytes));
    return halves;
}

/* Bytes 1 and 3 as int16. */
DSP_INLINE uint32_t dsp_odd(uint32_t bytes)
{
    uint32_t halves;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(bytes));
    return halves;
}

/* The lower halves of two words: `low` in the lower half. */
DSP_INLINE uint32_t dsp_low_halves(uint32_t low, uint32_t high)
{
    uint32_t halves;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(halves) : "r"(low), "r"(high));
    return halves;
}

/* The upper halves of two words: that of `low` in the lower half. */
DSP_INLINE uint32_t dsp_high_halves(uint32_t low, uint32_t high)
{
    uint32_t halves;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(halves) : "r"(high), "r"(low));
    return halves;
}

/* Bytes 0 and 2, alone in their halves. */
DSP_INLINE uint32_t dsp_low_bytes(uint32_t halves)
{
    uint32_t bytes;
    __asm__("uxtb16 %0, %1" : "=r"(bytes) : "r"(halves));
    return bytes;
}

/* sum + both products of int16 halves. */
DSP_INLINE int32_t dsp_smlad(uint32_t x, uint32_t y, int32_t sum)
{
    int32_t result;
    __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}

/* sum + the rounded upper half of a product: (2^32 * sum + x * y + 2^31) >> 32. */
DSP_INLINE int32_t dsp_smmlar(int32_t x, int32_t y, int32_t sum)
{
    int32_t result;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}

/* Clipped to int16. */
DSP_INLINE int32_t dsp_ssat_16(int32_t x)
{
    int32_t result;
    __asm__("ssat %0, #16, %1" : "=r"(result) : "r"(x));
    return result;
}

/* Both signed halves clipped to 0...255. */
DSP_INLINE uint32_t dsp_usat16_8(uint32_t halves)
{
    uint32_t result;
    __asm__("usat16 %0, #8, %1" : "=r"(result) : "r"(halves));
    return result;
}

/* Byte by byte: x - y, not below 0. */
DSP_INLINE uint32_t dsp_uqsub8(uint32_t x, uint32_t y)
{
    uint32_t result;
    __asm__("uqsub8 %0, %1, %2" : "=r"(result) : "r"(x), "r"(y));
    return result;
}

/* Byte by byte: x + y. It also sets the greater-or-equal flags, which these kernels do not read. */
DSP_INLINE uint32_t dsp_uadd8(uint32_t x, uint32_t y)
{
    uint32_t result;
    __asm__("uadd8 %0, %1, %2" : "=r"(result) : "r"(x), "r"(y));
    return result;
}

/* sum + the four unsigned bytes of x. */
DSP_INLINE uint32_t dsp_add_bytes(uint32_t x, uint32_t sum)
{
    uint32_t result;
    __asm__("usada8 %0, %1, %2, %3" : "=r"(result) : "r"(x), "r"(0), "r"(sum));
    return result;
}

/* Both halves of two words added. */
DSP_INLINE uint32_t dsp_sadd16(uint32_t x, uint32_t y)
{
    uint32_t result;
    __asm__("sadd16 %0, %1, %2" : "=r"(result) : "r"(x), "r"(y));
    return result;
}

/* a: half by half, the larger element of two words. */
DSP_INLINE void dsp_take_larger(uint32_t *a, uint32_t b)
{
    uint32_t difference;
    __asm__("ssub16 %1, %0, %2\n\tsel %0, %0, %2" : "+r"(*a), "=&r"(difference) : "r"(b) : "cc");
}

/* The rounded upper half of a product: (x * y + 2^31) >> 32. */
DSP_INLINE int32_t dsp_smmulr(int32_t x, int32_t y)
{
    int32_t result;
    __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(x), "r"(y));
    return result;
}
