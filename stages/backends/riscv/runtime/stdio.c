/* printf for kernel benchmarks and tests: picolibc's stdout, one host call per line (a call costs about 5,000 instructions). */
#include <stdio.h>

#include "board.h"

enum { CONSOLE = 1, LINE_BYTES = 256 };

static char line[LINE_BYTES];
static size_t used;

void console_flush(void);

void console_flush(void)
{
    board_write(CONSOLE, line, used);
    used = 0;
}

static int put(char c, FILE *stream)
{
    (void)stream;
    line[used++] = c;
    if (c == '\n' || used == LINE_BYTES)
        console_flush();
    return (unsigned char)c;
}

static FILE console = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
FILE *const stdout = &console;
FILE *const stderr = &console;
FILE *const stdin = &console;
