/* Files of the host through a debugger, on a board: the program stops in debugger_stop, where the debugger has a
 * breakpoint. It reads the request, moves the bytes in the target's memory itself, leaves the result and lets the program
 * go on (stages/backends/hardware/served.py).
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "board.h"

enum operation { OPEN_READ = 1, OPEN_WRITE, READ, WRITE, CLOSE, EXIT };

/* Words of the target. `counter` says what board_instructions counts: stages/backends/hardware/run.py has the names. */
struct debugger_request {
    uintptr_t operation, file, address, bytes, result, counter;
};

volatile struct debugger_request debugger_request;
extern volatile uint32_t debugger_counter; /* in the family's cycles.c */

void debugger_stop(void);

__attribute__((noinline, used)) void debugger_stop(void)
{
    __asm__ volatile("nop" ::: "memory");
}

static intptr_t ask(enum operation operation, int file, const void *address, size_t bytes)
{
    debugger_request.operation = operation;
    debugger_request.file = (uintptr_t)(intptr_t)file;
    debugger_request.address = (uintptr_t)address;
    debugger_request.bytes = bytes;
    debugger_request.result = (uintptr_t)-1;
    debugger_request.counter = debugger_counter;
    debugger_stop();
    return (intptr_t)debugger_request.result;
}

int board_open_read(const char *path)
{
    return (int)ask(OPEN_READ, 0, path, strlen(path));
}

int board_open_write(const char *path)
{
    return (int)ask(OPEN_WRITE, 0, path, strlen(path));
}

int board_read(int file, void *data, size_t bytes)
{
    return bytes == 0 ? 0 : (int)ask(READ, file, data, bytes);
}

int board_write(int file, const void *data, size_t bytes)
{
    return bytes == 0 ? 0 : (int)ask(WRITE, file, data, bytes);
}

void board_close(int file)
{
    ask(CLOSE, file, NULL, 0);
}

void board_exit(int code)
{
    for (;;)
        ask(EXIT, code, NULL, 0);
}

/* A program that hangs is stopped by the debugger. */
void board_watchdog(uint64_t instructions)
{
    (void)instructions;
}
