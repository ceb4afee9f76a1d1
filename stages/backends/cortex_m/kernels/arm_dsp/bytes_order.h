/* The larger and the smaller of four pairs of bytes. */
#pragma once

#include "dsp.h"

/* The larger byte of each pair. */
DSP_INLINE uint32_t larger(uint32_t a, uint32_t b, int is_unsigned)
{
    uint32_t result;
    if (is_unsigned) {
        __asm__("usub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b) : "cc");
    } else {
        __asm__("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b) : "cc");
    }
    return result;
}

/* The smaller byte of each pair. */
DSP_INLINE uint32_t smaller(uint32_t a, uint32_t b, int is_unsigned)
{
    uint32_t result;
    if (is_unsigned) {
        __asm__("usub8 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(result) : "r"(a), "r"(b) : "cc");
    } else {
        __asm__("ssub8 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(result) : "r"(a), "r"(b) : "cc");
    }
    return result;
}
