/* Spike's host interface (HTIF): a program writes a request to `tohost` and waits for `fromhost`.
 *
 * `tohost` is (code << 1) | 1 to end the program, or the address of eight 64-bit words {call number, arguments...} that
 * the host replaces by {result}. Call numbers and structure are those of the RISC-V proxy kernel and front-end server.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "board.h"

enum { CALL_OPENAT = 56, CALL_CLOSE = 57, CALL_READ = 63, CALL_WRITE = 64 };
enum { CURRENT_DIRECTORY = -100, OPEN_READ = 0, OPEN_WRITE_CREATE_TRUNCATE = 01 | 0100 | 01000, MODE_644 = 0644 };

/* The host splits requests. Requests of at most this size keep the host's buffer small. */
#define CHUNK_BYTES (1u << 20)

/* The host sees 64 bits. The program stores one register: on RV32 two stores would let the host see half a request. */
union mailbox {
    uint64_t whole;
    uintptr_t word;
};

void console_flush(void);

__attribute__((section(".tohost"), aligned(64))) volatile union mailbox tohost;
__attribute__((section(".tohost"), aligned(64))) volatile union mailbox fromhost;
static volatile uint64_t request[8] __attribute__((aligned(64)));

static void post(uintptr_t value)
{
    __asm__ volatile("fence" ::: "memory");
    tohost.word = value;
}

static int64_t host_call(int number, int64_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)
{
    request[0] = (uint64_t)number;
    request[1] = (uint64_t)a;
    request[2] = b;
    request[3] = c;
    request[4] = d;
    request[5] = e;
    post((uintptr_t)request);
    while (fromhost.word == 0) {
    }
    fromhost.word = 0;
    __asm__ volatile("fence" ::: "memory");
    return (int64_t)request[0];
}

static int open_file(const char *path, unsigned flags)
{
    return (int)host_call(CALL_OPENAT, CURRENT_DIRECTORY, (uintptr_t)path, strlen(path) + 1, flags, MODE_644);
}

int board_open_read(const char *path)
{
    return open_file(path, OPEN_READ);
}

int board_open_write(const char *path)
{
    return open_file(path, OPEN_WRITE_CREATE_TRUNCATE);
}

static int transfer(int number, int file, uintptr_t address, size_t bytes)
{
    while (bytes > 0) {
        size_t part = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
        int64_t moved = host_call(number, file, address, part, 0, 0);
        if (moved <= 0)
            return -1;
        address += (uintptr_t)moved;
        bytes -= (size_t)moved;
    }
    return 0;
}

int board_read(int file, void *data, size_t bytes)
{
    return transfer(CALL_READ, file, (uintptr_t)data, bytes);
}

int board_write(int file, const void *data, size_t bytes)
{
    return transfer(CALL_WRITE, file, (uintptr_t)data, bytes);
}

void board_close(int file)
{
    host_call(CALL_CLOSE, file, 0, 0, 0, 0);
}

/* stdio.c, where it is linked, has a line to write before the program ends. */
__attribute__((weak)) void console_flush(void)
{
}

void board_exit(int code)
{
    console_flush();
    for (;;)
        post(((uintptr_t)(unsigned)code << 1) | 1u);
}
