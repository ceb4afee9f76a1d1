/* Gathers windows into rows, byte by byte. */
#include "windows.h"

#include "elements.h"

INLINE void copy(int8_t *to, const int8_t *from, intptr_t count, int32_t flip)
{
    for (intptr_t i = 0; i < count; i++) {
        to[i] = (int8_t)(from[i] ^ flip);
    }
}

INLINE void set(int8_t *to, intptr_t count, int32_t value)
{
    for (intptr_t i = 0; i < count; i++) {
        to[i] = (int8_t)value;
    }
}

#include "gather_windows_image.h"

void fl_windows(const void *x, int8_t *rows, int32_t first, int32_t count, const void *windows)
{
    gather_windows(x, rows, first, count, windows);
}
