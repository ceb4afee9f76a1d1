/* int8 to uint8, or back, four words at a time. */
#include "top_bits.h"

typedef uint32_t __attribute__((may_alias)) word;

#define TOP_BITS 0x80808080u

void fl_flip_top_bits(const void *from, void *to, int32_t count)
{
    const uint8_t *x = from;
    uint8_t *y = to;
    if ((((uintptr_t)x | (uintptr_t)y) & 3) == 0) {
        for (; count >= 16; count -= 16, x += 16, y += 16) {
            const word *s = (const word *)(const void *)x;
            word *t = (word *)(void *)y;
            const word a = s[0], b = s[1], c = s[2], d = s[3];
            t[0] = a ^ TOP_BITS, t[1] = b ^ TOP_BITS, t[2] = c ^ TOP_BITS, t[3] = d ^ TOP_BITS;
        }
    }
    for (; count > 0; count--) {
        *y++ = *x++ ^ 0x80;
    }
}
