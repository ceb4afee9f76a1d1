/* System calls for newlib's printf. For kernel benchmarks and tests, never in firmware. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "board.h"
#include "console.h"

enum { HEAP_BYTES = 16384 };

int _close(int file);
int _fstat(int file, struct stat *status);
int _getpid(void);
int _isatty(int file);
int _kill(int process, int number);
off_t _lseek(int file, off_t offset, int whence);
int _read(int file, char *data, int bytes);
void *_sbrk(ptrdiff_t bytes);
int _write(int file, const char *data, int bytes);
_Noreturn void _exit(int code);

void console_flush(void)
{
    fflush(stdout);
}

int _write(int file, const char *data, int bytes)
{
    (void)file;
    console_write(data, (size_t)bytes);
    return bytes;
}

/* The buffer of stdout comes from here. */
void *_sbrk(ptrdiff_t bytes)
{
    static char heap[HEAP_BYTES] __attribute__((aligned(8)));
    static ptrdiff_t used;
    if (used + bytes > HEAP_BYTES) {
        errno = ENOMEM;
        return (void *)-1;
    }
    char *start = heap + used;
    used += bytes;
    return start;
}

/* A terminal: newlib writes a line when it is complete. */
int _fstat(int file, struct stat *status)
{
    (void)file;
    status->st_mode = S_IFCHR;
    return 0;
}

int _isatty(int file)
{
    (void)file;
    return 1;
}

int _close(int file)
{
    (void)file;
    return 0;
}

off_t _lseek(int file, off_t offset, int whence)
{
    (void)file;
    (void)offset;
    (void)whence;
    return 0;
}

int _read(int file, char *data, int bytes)
{
    (void)file;
    (void)data;
    (void)bytes;
    return 0;
}

int _getpid(void)
{
    return 1;
}

int _kill(int process, int number)
{
    (void)process;
    board_exit(128 + number);
}

void _exit(int code)
{
    board_exit(code);
}
