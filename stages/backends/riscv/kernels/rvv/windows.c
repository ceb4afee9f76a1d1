/* Gathers windows into rows, from which convolution is a product of matrices. */
#include "windows.h"

#define INLINE static inline __attribute__((always_inline))

/* Copies `count` bytes, each xored with `flip`, in pieces of eight vector registers. */
INLINE void copy(int8_t *to, const int8_t *from, intptr_t count, int32_t flip)
{
    intptr_t piece;
    __asm__ volatile(".option push\n.option arch, +zve32x\n"
                     "1: vsetvli %[piece], %[count], e8, m8, ta, ma\n"
                     "vle8.v v0, (%[from])\n"
                     "add %[from], %[from], %[piece]\n"
                     "sub %[count], %[count], %[piece]\n"
                     "vxor.vx v0, v0, %[flip]\n"
                     "vse8.v v0, (%[to])\n"
                     "add %[to], %[to], %[piece]\n"
                     "bnez %[count], 1b\n.option pop"
                     : [piece] "=&r"(piece), [count] "+r"(count), [from] "+r"(from), [to] "+r"(to)
                     : [flip] "r"(flip)
                     : "memory");
}

INLINE void set(int8_t *to, intptr_t count, int32_t value)
{
    intptr_t piece;
    __asm__ volatile(".option push\n.option arch, +zve32x\n"
                     "1: vsetvli %[piece], %[count], e8, m8, ta, ma\n"
                     "vmv.v.x v0, %[value]\n"
                     "sub %[count], %[count], %[piece]\n"
                     "vse8.v v0, (%[to])\n"
                     "add %[to], %[to], %[piece]\n"
                     "bnez %[count], 1b\n.option pop"
                     : [piece] "=&r"(piece), [count] "+r"(count), [to] "+r"(to)
                     : [value] "r"(value)
                     : "memory");
}

#include "gather_windows_image.h"

void rvv_windows(const void *x, int8_t *rows, int32_t first, int32_t count, const void *windows)
{
    gather_windows(x, rows, first, count, windows);
}
