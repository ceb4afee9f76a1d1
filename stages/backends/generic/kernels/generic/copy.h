/* Copies of rows by whole words, independent of how the C library's memcpy was built (some copy byte by byte). */
#pragma once

#include <stdint.h>
#include <string.h> /* of layers that copy runs of bytes */

/* `rows` rows of `words` words; each begins `to_step` (from_step) bytes after the one before. Addresses and steps are
 * multiples of the word. */
void fl_copy_rows_32(void *to, const void *from, int32_t rows, int32_t words, int32_t to_step, int32_t from_step);
void fl_copy_rows_64(void *to, const void *from, int32_t rows, int32_t words, int32_t to_step, int32_t from_step);
