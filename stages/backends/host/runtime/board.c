/* The harness's board on the machine that builds: nothing counts instructions, the stack is not measured. A hang ends by
 * the limit of processor time of this process.
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
