/* Joins rows without the padding at their ends. */
#pragma once

/* The first `columns` bytes of each of `count` rows of `width` bytes, a multiple of a register's; `from` is aligned, `to` is
 * anywhere.
 */
void rvp_join_rows(const void *from, void *to, int count, int width, int columns);
