/* Reports a trap to the host as one line, which stages/backends/riscv/spike/fault.py reads, and ends the program. */
#include <stdint.h>

#include "board.h"

enum { TRAP_EXIT_CODE = 99, CONSOLE = 1 };

static char line[] = "TRAP cause=0000000000000000 pc=0000000000000000 tval=0000000000000000 "
                     "ra=0000000000000000 sp=0000000000000000\n";
enum { CAUSE_AT = 11, PC_AT = 31, TVAL_AT = 53, RA_AT = 73, SP_AT = 93 };

static void write_hex(char *digits, uint64_t value)
{
    for (int i = 15; i >= 0; i--, value >>= 4)
        digits[i] = "0123456789abcdef"[value & 15];
}

void trap_report(unsigned long cause, unsigned long pc, unsigned long tval, unsigned long ra, unsigned long sp)
{
    write_hex(line + CAUSE_AT, cause);
    write_hex(line + PC_AT, pc);
    write_hex(line + TVAL_AT, tval);
    write_hex(line + RA_AT, ra);
    write_hex(line + SP_AT, sp);
    board_write(CONSOLE, line, sizeof line - 1);
    board_exit(TRAP_EXIT_CODE);
}
