/* The harness's files are files, where there is an operating system: `host` and `aarch64`. */
#include <fcntl.h>
#include <unistd.h>

#include "board.h"

int board_open_read(const char *path)
{
    return open(path, O_RDONLY);
}

int board_open_write(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
}

int board_read(int file, void *data, size_t bytes)
{
    for (char *at = data; bytes > 0;) {
        ssize_t moved = read(file, at, bytes);
        if (moved <= 0)
            return -1;
        at += moved;
        bytes -= (size_t)moved;
    }
    return 0;
}

int board_write(int file, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        ssize_t moved = write(file, at, bytes);
        if (moved <= 0)
            return -1;
        at += moved;
        bytes -= (size_t)moved;
    }
    return 0;
}

void board_close(int file)
{
    close(file);
}
