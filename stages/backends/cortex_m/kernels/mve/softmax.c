/* Softmax of one row, four elements at a time, in the fixed-point arithmetic of the reference (gemmlowp). */
#include "softmax.h"

#include "bytes.h"
#include "reciprocal.h"

#define LARGEST(type)                                                                                                  \
    __asm__ volatile("wlstp.8 lr, %[count], 2f\n"                                                                      \
                     "1: vldrb.8 %q[bytes], [%[x]], #16\n"                                                             \
                     "vmax." type " %q[most], %q[most], %q[bytes]\n"                                                   \
                     "letp lr, 1b\n"                                                                                   \
                     "2:"                                                                                              \
                     : [x] "+r"(x), [bytes] "=&w"(bytes), [most] "+w"(most)                                            \
                     : [count] "r"(count)                                                                              \
                     : "lr", "memory")

MVE_INLINE int32_t largest(const uint8_t *x, int32_t count, int is_unsigned)
{
    uint8x16_t most = vdupq_n_u8(is_unsigned ? 0 : 0x80), bytes;
    if (is_unsigned) {
        LARGEST("u8");
        return vmaxvq_u8(0, most);
    }
    LARGEST("s8");
    return vmaxvq_s8(-128, (int8x16_t)most);
}

/* Exponentials of four elements, gathered by their distances from the largest. */
#define EXPONENTIALS(type)                                                                                             \
    "1: vldrb." type " %q[e], [%[x]], #4\n"                                                                            \
    "vsub.i32 %q[e], %q[top], %q[e]\n"                                                                                 \
    "vldrw.u32 %q[z], [%[exp], %q[e], uxtw #2]\n"

#define SUM(type)                                                                                                      \
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n" EXPONENTIALS(type) "vrshr.s32 %q[z], %q[z], #12\n"                  \
                     "vaddva.u32 %[sum], %q[z]\n"                                                                      \
                     "letp lr, 1b\n"                                                                                   \
                     "2:"                                                                                              \
                     : [sum] "+r"(sum), [x] "+l"(x), [e] "=&w"(e), [z] "=&w"(z)                                        \
                     : [count] "r"(count), [exp] "r"(exp), [top] "w"(top)                                              \
                     : "lr", "memory")

/* Q12.19. */
MVE_INLINE uint32_t sum_of(const uint8_t *x, const int32_t *exp, int32_t count, int32x4_t top, int is_unsigned)
{
    register uint32_t sum __asm__("r0") = 0; /* vaddva wants an even register */
    int32x4_t e, z;
    if (is_unsigned) {
        SUM("u32");
    } else {
        SUM("s32");
    }
    return sum;
}

#define PARTS(type)                                                                                                    \
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n" EXPONENTIALS(type) "vqrdmulh.s32 %q[z], %q[z], %[scale]\n"          \
                     "vrshl.s32 %q[z], %[left]\n"                                                                      \
                     "vmin.s32 %q[z], %q[z], %q[most]\n"                                                               \
                     "vadd.i32 %q[z], %q[z], %[lowest]\n"                                                              \
                     "vstrb.32 %q[z], [%[y]], #4\n"                                                                    \
                     "letp lr, 1b\n"                                                                                   \
                     "2:"                                                                                              \
                     : [x] "+l"(x), [y] "+l"(y), [e] "=&w"(e), [z] "=&w"(z)                                            \
                     : [count] "r"(count), [exp] "r"(exp), [top] "w"(top), [scale] "r"(scale), [left] "r"(left),       \
                       [lowest] "r"(lowest), [most] "w"(most)                                                          \
                     : "lr", "memory")

MVE_INLINE void softmax(const uint8_t *x, const int32_t *exp, uint8_t *y, int32_t count, int is_unsigned)
{
    const int32x4_t top = vdupq_n_s32(largest(x, count, is_unsigned)), most = vdupq_n_s32(255);
    const uint32_t sum = sum_of(x, exp, count, top, is_unsigned);
    const int32_t zeros = __builtin_clz(sum), shift = 12 - zeros + 23;
    const int32_t scale = fl_reciprocal((int32_t)((sum << zeros) >> 1)), lowest = is_unsigned ? 0 : -128;
    const int32_t left = shift > 31 ? -32 : -shift; /* parts are below 2^31: 0 if shifted by 32 */
    int32x4_t e, z;
    if (is_unsigned) {
        PARTS("u32");
    } else {
        PARTS("s32");
    }
}

void mve_softmax_s8(const int8_t *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step)
{
    (void)x_step, (void)y_step;
    softmax((const uint8_t *)x, exp, y, count, 0);
}

void mve_softmax_u8(const uint8_t *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step)
{
    (void)x_step, (void)y_step;
    softmax(x, exp, y, count, 1);
}
