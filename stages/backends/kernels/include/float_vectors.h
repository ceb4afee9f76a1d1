/* Exact floats with MVE (Helium). Its instructions flush subnormal numbers to zero and note that in FPSCR, as input denormal
 * (IDC) or underflow (UFC). The other instructions of the FPU do not flush (Armv8.1-M Architecture Reference Manual, DDI 0553).
 * So a function with vectors runs again without them if they flushed a number:
 *
 *     uint32_t flags = fl_begin_vectors();
 *
 *     layer_vectors(input, output);
 *     if (fl_end_vectors(flags) != 0) {
 *         layer_scalars(input, output);
 *     }
 */
#pragma once

#include <stdint.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define WITH_FLOAT_VECTORS __attribute__((noinline))

#if defined(__ARM_FEATURE_MVE) && ((__ARM_FEATURE_MVE & 2) != 0)
#ifdef __clang__
#define WITHOUT_FLOAT_VECTORS __attribute__((noinline, target("no-mve.fp")))
#else
/* -fno-tree-vectorize alone does not undo the two flags that it stands for. */
#define WITHOUT_FLOAT_VECTORS                                                                                             \
    __attribute__((noinline, optimize("no-tree-vectorize", "no-tree-loop-vectorize", "no-tree-slp-vectorize")))
#endif

#define FL_FLUSHED 0x88u /* FPSCR.IDC and FPSCR.UFC */

/* Clear both flags. Return FPSCR as it was. */
static inline uint32_t fl_begin_vectors(void)
{
    uint32_t before;

    __asm__ volatile("vmrs %0, fpscr" : "=r"(before) : : "memory");
    __asm__ volatile("vmsr fpscr, %0" : : "r"(before & ~FL_FLUSHED) : "memory");
    return before;
}

/* Return whether vectors flushed a number. Set the flags that were set before. */
static inline int fl_end_vectors(uint32_t before)
{
    uint32_t after;

    __asm__ volatile("vmrs %0, fpscr" : "=r"(after) : : "memory");
    __asm__ volatile("vmsr fpscr, %0" : : "r"(after | (before & FL_FLUSHED)) : "memory");
    return (after & FL_FLUSHED) != 0u;
}
#else
#define WITHOUT_FLOAT_VECTORS

static inline uint32_t fl_begin_vectors(void)
{
    return 0u;
}

static inline int fl_end_vectors(uint32_t before)
{
    (void)before;
    return 0;
}
#endif
