/* Windows that NE16 has no mode for, laid side by side: each pixel of the result has the bytes of one window. */
#ifndef NE16_GATHER_H
#define NE16_GATHER_H

#include <stdint.h>

/* numbers: rows, columns and channels of the input; rows and columns of windows; rows and columns of one; steps down and
 * to the right; rows of padding above, columns to the left; the byte that padding has. */
void ne16_gather(const uint8_t *input, uint8_t *windows, const int32_t numbers[12]);

#endif
