/* Instruction counter and watchdog under QEMU, from the counting plug-in (stages/backends/qemu/plugin/counter.c).
 *
 * The plug-in and the program share the file counter.bin {uint64 count, uint64 limit}.
 */
#include <stdint.h>

#include "board.h"
#include "counter.h"
#include "marker.h"

enum { COUNT_AT = 0, LIMIT_AT = 8, NO_COUNTER_EXIT_CODE = 6 };

uint64_t read_counter(void);

static int counter_file = -1;

static void seek(uint32_t offset)
{
    if (counter_file < 0)
        counter_file = board_open_update("counter.bin");
    if (counter_file < 0)
        board_exit(NO_COUNTER_EXIT_CODE);
    board_seek(counter_file, offset);
}

/* Called by read_counter.S, between STOP and GO. */
uint64_t read_counter(void)
{
    uint64_t count = 0;
    seek(COUNT_AT);
    if (board_read(counter_file, &count, sizeof count) < 0)
        board_exit(NO_COUNTER_EXIT_CODE);
    return count;
}

void board_watchdog(uint64_t instructions)
{
    seek(LIMIT_AT);
    if (board_write(counter_file, &instructions, sizeof instructions) < 0)
        board_exit(NO_COUNTER_EXIT_CODE);
    MARK(MARKER_ARM);
}
