/* int8 to uint8, or back, by flipping the top bit of each byte. */
#pragma once

#include <stdint.h>

/* Flips the top bit of each of `count` bytes; `to` may be `from`. */
void fl_flip_top_bits(const void *from, void *to, int32_t count);
