/* The harness's board on the build machine. Instructions are not counted and the stack is not measured. A limit on the
 * processor time of the process ends a hang.
 */
#include <stdlib.h>

#include "board.h"

void board_exit(int code)
{
    exit(code);
}

uint64_t board_instructions(void)
{
    return 0;
}

void board_watchdog(uint64_t instructions)
{
    (void)instructions;
}

uint32_t board_stack_used(void)
{
    return 0;
}
