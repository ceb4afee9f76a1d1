/* Runs of bytes in tail-predicated low-overhead loops: three instructions for 16 bytes, for any count. GCC does not make such loops. */
#pragma once

#include <arm_mve.h>
#include <stdint.h>

#define MVE_INLINE static inline __attribute__((always_inline))

/* Copies `count` >= 0 bytes, each xored with the same byte of `flip`; returns the end of what was written. */
MVE_INLINE uint8_t *mve_copy_flipped(uint8_t *to, const uint8_t *from, int32_t count, uint8x16_t flip)
{
    uint8_t *at = to;
    uint8x16_t bytes;
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"
                     "1: vldrb.8 %q[bytes], [%[from]], #16\n"
                     "veor %q[bytes], %q[bytes], %q[flip]\n"
                     "vstrb.8 %q[bytes], [%[at]], #16\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [at] "+r"(at), [from] "+r"(from), [bytes] "=&w"(bytes)
                     : [count] "r"(count), [flip] "w"(flip)
                     : "lr", "memory");
    return to + count;
}

MVE_INLINE uint8_t *mve_copy(uint8_t *to, const uint8_t *from, int32_t count)
{
    uint8_t *at = to;
    uint8x16_t bytes;
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"
                     "1: vldrb.8 %q[bytes], [%[from]], #16\n"
                     "vstrb.8 %q[bytes], [%[at]], #16\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [at] "+r"(at), [from] "+r"(from), [bytes] "=&w"(bytes)
                     : [count] "r"(count)
                     : "lr", "memory");
    return to + count;
}

/* `count` >= 0 bytes of `value`. */
MVE_INLINE uint8_t *mve_set(uint8_t *to, int32_t count, uint8x16_t value)
{
    uint8_t *at = to;
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"
                     "1: vstrb.8 %q[value], [%[at]], #16\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [at] "+r"(at)
                     : [count] "r"(count), [value] "w"(value)
                     : "lr", "memory");
    return to + count;
}

/* The sum of `count` >= 0 bytes as int8. */
MVE_INLINE int32_t mve_sum(const int8_t *from, int32_t count)
{
    register int32_t sum __asm__("r0") = 0; /* vaddva wants an even register */
    int8x16_t bytes;
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"
                     "1: vldrb.8 %q[bytes], [%[from]], #16\n"
                     "vaddva.s8 %[sum], %q[bytes]\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [sum] "+r"(sum), [from] "+r"(from), [bytes] "=&w"(bytes)
                     : [count] "r"(count)
                     : "lr", "memory");
    return sum;
}
