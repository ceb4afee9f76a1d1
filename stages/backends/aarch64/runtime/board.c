/* A Linux program's exit, and files that are open for reading and writing. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "board.h"
#include "counter.h"

int board_open_update(const char *path)
{
    return open(path, O_RDWR);
}

void board_seek(int file, uint32_t offset)
{
    lseek(file, (off_t)offset, SEEK_SET);
}

void board_exit(int code)
{
    exit(code);
}
