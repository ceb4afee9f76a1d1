/* What a target family provides to the harness and to kernel benchmarks: a way to end, files on the host, an instruction
 * counter and a watchdog. `riscv/board.c` speaks to the simulator's host interface, `host/board.c` to the operating system.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Open a file in the host's current directory; returns a descriptor, or a negative number. */
int board_open_read(const char *path);
int board_open_write(const char *path);

/* Transfer exactly `bytes` bytes; returns 0, or -1 when the file ends early or the host reports an error. */
int board_read(int file, void *data, size_t bytes);
int board_write(int file, const void *data, size_t bytes);
void board_close(int file);

/* End the program. The process that runs the simulator sees `code` as exit status. */
_Noreturn void board_exit(int code);

/* Instructions retired since reset; always 0 if the machine does not count them. */
uint64_t board_instructions(void);

/* Trap when the program is still busy `instructions` from now; 0 disarms. May fire up to 10,000 instructions late. */
void board_watchdog(uint64_t instructions);

/* The next layer; -1: following work is not counted, and devices must not advance during it. */
#ifdef BOARD_MONITOR
void board_layer(int layer);
#else
static inline void board_layer(int layer)
{
    (void)layer;
}
#endif

/* Highest use of the stack so far, in bytes; 0 if it is not measured. */
uint32_t board_stack_used(void);
