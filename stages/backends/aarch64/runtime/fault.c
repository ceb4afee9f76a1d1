/* Reports a signal as one line, which stages/backends/qemu/fault.py reads, and ends the program. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ucontext.h>
#include <unistd.h>

enum { FAULT_EXIT_CODE = 99 };

/* The fault may be a broken stack, so the report has a separate one. */
static char report_stack[32768] __attribute__((aligned(16)));

static void report(int number, siginfo_t *info, void *context)
{
    const mcontext_t *at = &((const ucontext_t *)context)->uc_mcontext;
    char line[160];
    int bytes = snprintf(line, sizeof line, "FAULT signal=%x pc=%llx lr=%llx addr=%llx sp=%llx\n", (unsigned)number,
                         (unsigned long long)at->pc, (unsigned long long)at->regs[30],
                         (unsigned long long)(uintptr_t)info->si_addr, (unsigned long long)at->sp);
    if (write(STDERR_FILENO, line, (size_t)bytes) != bytes)
        _exit(EXIT_FAILURE);
    _exit(FAULT_EXIT_CODE);
}

__attribute__((constructor)) static void catch_faults(void)
{
    static const int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGABRT};
    const stack_t stack = {.ss_sp = report_stack, .ss_size = sizeof report_stack};
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&stack, NULL);
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}
