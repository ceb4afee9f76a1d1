/* Softmax of int16 rows, four elements at a time. */
#include "softmax16.h"

#include "bytes.h"
#include "softmax16_tables.h"

MVE_INLINE int32_t largest(const int16_t *x, int32_t count)
{
    int16x8_t most = vdupq_n_s16(INT16_MIN), z;
    __asm__ volatile("wlstp.16 lr, %[count], 2f\n"
                     "1: vldrh.16 %q[z], [%[x]], #16\n"
                     "vmax.s16 %q[most], %q[most], %q[z]\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [x] "+r"(x), [z] "=&w"(z), [most] "+w"(most)
                     : [count] "r"(count)
                     : "lr", "memory");
    return vmaxvq_s16(INT16_MIN, most);
}

/* Powers of a row to y; returns their sum. VQRDMULH scales, VMOVLB and VMOVLT take lines of the table apart. */
MVE_INLINE uint32_t powers(const int16_t *x, int16_t *y, const uint32_t *table, int32_t count, int32_t top,
                           const struct softmax16_scale *s)
{
    register uint32_t sum __asm__("r0") = 0; /* vaddva wants an even register */
    const int32x4_t most = vdupq_n_s32(65535), within = vdupq_n_s32(127);
    int32x4_t e, z, line;
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1: vldrh.s32 %q[e], [%[x]], #8\n"
                     "vsub.i32 %q[e], %q[e], %q[top]\n"
                     "vshl.s32 %q[e], %[left]\n"
                     "vqrdmulh.s32 %q[e], %q[e], %[multiplier]\n"
                     "vneg.s32 %q[e], %q[e]\n"
                     "vrshl.s32 %q[e], %[right]\n"
                     "vqsub.u32 %q[e], %q[most], %q[e]\n"
                     "vshr.s32 %q[z], %q[e], #7\n"
                     "vand %q[e], %q[e], %q[within]\n"
                     "vldrw.u32 %q[line], [%[table], %q[z], uxtw #2]\n"
                     "vmovlt.s16 %q[z], %q[line]\n"
                     "vmul.i32 %q[z], %q[z], %q[e]\n"
                     "vmovlb.s16 %q[line], %q[line]\n"
                     "vrshr.s32 %q[z], %q[z], #7\n"
                     "vadd.i32 %q[z], %q[z], %q[line]\n"
                     "vaddva.u32 %[sum], %q[z]\n"
                     "vstrh.32 %q[z], [%[y]], #8\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [sum] "+r"(sum), [x] "+l"(x), [y] "+l"(y), [e] "=&w"(e), [z] "=&w"(z), [line] "=&w"(line)
                     : [count] "r"(count), [table] "r"(table), [top] "w"(vdupq_n_s32(top)), [left] "r"(s->left), [right] "r"(-s->right),
                       [multiplier] "r"(s->multiplier), [most] "w"(most), [within] "w"(within)
                     : "lr", "memory");
    return sum;
}

MVE_INLINE void scale(int16_t *y, int32_t count, const struct softmax16_factor *f)
{
    const int32x4_t most = vdupq_n_s32(32767);
    int32x4_t z;
    __asm__ volatile("wlstp.32 lr, %[count], 2f\n"
                     "1: vldrh.s32 %q[z], [%[y]]\n"
                     "vmul.i32 %q[z], %q[z], %[factor]\n"
                     "vrshl.s32 %q[z], %[right]\n"
                     "vmin.s32 %q[z], %q[z], %q[most]\n"
                     "vstrh.32 %q[z], [%[y]], #8\n"
                     "letp lr, 1b\n"
                     "2:"
                     : [y] "+l"(y), [z] "=&w"(z)
                     : [count] "r"(count), [factor] "r"(f->factor), [right] "r"(-f->shift), [most] "w"(most)
                     : "lr", "memory");
}

void mve_softmax_s16(const int16_t *x, int16_t *y, const int32_t *tables, int32_t rows, int32_t count, int32_t multiplier,
                     int32_t shift)
{
    const struct softmax16_tables *t = (const struct softmax16_tables *)tables;
    const struct softmax16_scale s = softmax16_scale_of(multiplier, shift);
    for (; rows > 0; rows--) {
        const uint32_t total = powers(x, y, t->exponential, count, largest(x, count), &s);
        const struct softmax16_factor f = softmax16_factor_of(t->reciprocal, total);
        scale(y, count, &f);
        x += count;
        y += count;
    }
}
