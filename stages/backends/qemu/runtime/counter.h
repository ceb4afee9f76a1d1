/* Functions that counter.c needs in addition to board.h: reads and writes at an offset of a file. */
#pragma once

#include <stdint.h>

/* Open for reading and writing without creating; returns a descriptor, or a negative number. */
int board_open_update(const char *path);

/* The next transfer happens `offset` bytes into the file. */
void board_seek(int file, uint32_t offset);
