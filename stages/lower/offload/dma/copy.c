/* Transfers on a board without a DMA engine: the core copies, so waiting ends at once.
 *
 * It copies words if all addresses are aligned: a C library's memcpy may copy byte by byte.
 */
#include "dma.h"

typedef uint32_t __attribute__((may_alias)) word;

static void copy_words(word *to, const word *from, uint32_t count)
{
    for (; count >= 4; count -= 4, to += 4, from += 4) {
        const word a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    }
    for (; count > 0; count--)
        *to++ = *from++;
}

static void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t count)
{
    for (; count >= 4; count -= 4, to += 4, from += 4) {
        const uint8_t a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    }
    for (; count > 0; count--)
        *to++ = *from++;
}

void dma_init(uintptr_t base)
{
    (void)base;
}

void dma_start(void *to, const void *from, uint32_t bytes, uint32_t runs, uint32_t to_stride, uint32_t from_stride)
{
    const uintptr_t any = (uintptr_t)to | (uintptr_t)from | (runs > 1 ? to_stride | from_stride : 0);
    uint8_t *target = to;
    const uint8_t *source = from;

    for (; runs > 0; runs--, target += to_stride, source += from_stride) {
        const uint32_t whole = any % sizeof(word) == 0 ? bytes - bytes % sizeof(word) : 0;
        copy_words((word *)(void *)target, (const word *)(const void *)source, whole / sizeof(word));
        copy_bytes(target + whole, source + whole, bytes - whole);
    }
}

void dma_wait(uint32_t left)
{
    (void)left;
}
