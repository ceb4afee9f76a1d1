/* Files of the host through semihosting: BKPT 0xAB with the operation in r0 and the address of its arguments in r1.
 *
 * Operations and their arguments: "Semihosting for AArch32 and AArch64" of the Arm ABI. QEMU opens paths relative to its
 * current directory.
 */
#include <stdint.h>
#include <string.h>

#include "board.h"
#include "console.h"
#include "counter.h"

enum operation {
    SYS_OPEN = 0x01,
    SYS_CLOSE = 0x02,
    SYS_WRITE = 0x05,
    SYS_READ = 0x06,
    SYS_SEEK = 0x0A,
    SYS_EXIT_EXTENDED = 0x20,
};
enum mode { READ_BINARY = 1, UPDATE_BINARY = 3, WRITE = 4, WRITE_BINARY = 5 }; /* as fopen's rb, r+b, w, wb */
#define APPLICATION_EXIT 0x20026u

static int32_t host_call(enum operation number, const void *arguments)
{
    register uint32_t r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (int32_t)r0;
}

static int open_file(const char *path, enum mode mode)
{
    const uint32_t arguments[3] = {(uint32_t)path, mode, strlen(path)};
    return host_call(SYS_OPEN, arguments);
}

int board_open_read(const char *path)
{
    return open_file(path, READ_BINARY);
}

int board_open_write(const char *path)
{
    return open_file(path, WRITE_BINARY);
}

int board_open_update(const char *path)
{
    return open_file(path, UPDATE_BINARY);
}

/* The host returns how many bytes it did not move. */
static int transfer(enum operation number, int file, uintptr_t address, uint32_t bytes)
{
    while (bytes > 0) {
        const uint32_t arguments[3] = {(uint32_t)file, address, bytes};
        uint32_t left = (uint32_t)host_call(number, arguments);
        if (left >= bytes)
            return -1;
        address += bytes - left;
        bytes = left;
    }
    return 0;
}

int board_read(int file, void *data, size_t bytes)
{
    return transfer(SYS_READ, file, (uintptr_t)data, bytes);
}

int board_write(int file, const void *data, size_t bytes)
{
    return transfer(SYS_WRITE, file, (uintptr_t)data, bytes);
}

void board_seek(int file, uint32_t offset)
{
    const uint32_t arguments[2] = {(uint32_t)file, offset};
    host_call(SYS_SEEK, arguments);
}

void board_close(int file)
{
    const uint32_t arguments[1] = {(uint32_t)file};
    host_call(SYS_CLOSE, arguments);
}

void console_write(const char *text, size_t bytes)
{
    static int console = -1;
    if (console < 0)
        console = open_file(":tt", WRITE); /* the host's standard output */
    board_write(console, text, bytes);
}

/* stdio.c, where it is linked, has text to write before the program ends. */
__attribute__((weak)) void console_flush(void)
{
}

void board_exit(int code)
{
    const uint32_t arguments[2] = {APPLICATION_EXIT, (uint32_t)code};
    console_flush();
    for (;;)
        host_call(SYS_EXIT_EXTENDED, arguments);
}
