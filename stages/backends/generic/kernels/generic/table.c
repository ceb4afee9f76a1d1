/* Tables of an 8-bit type. */
#include "table.h"

void fl_table(const void *x, void *y, int32_t count, int32_t step, const void *table)
{
    const uint8_t *from = x, *const entries = table;
    uint8_t *to = y;
    if (step == 1) {
        for (; count >= 8; count -= 8) {
            const uint8_t a = entries[from[0]], b = entries[from[1]], c = entries[from[2]], d = entries[from[3]];
            const uint8_t e = entries[from[4]], f = entries[from[5]], g = entries[from[6]], h = entries[from[7]];
            to[0] = a, to[1] = b, to[2] = c, to[3] = d, to[4] = e, to[5] = f, to[6] = g, to[7] = h;
            from += 8;
            to += 8;
        }
    }
    for (; count > 0; count--) {
        *to++ = entries[*from];
        from += step;
    }
}
