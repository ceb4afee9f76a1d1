/* Control and status registers of RISC-V, by name. */
#pragma once

#define csr_read(csr) ({ unsigned long value_; __asm__ volatile("csrr %0, " #csr : "=r"(value_)); value_; })
#define csr_set(csr, bits) __asm__ volatile("csrs " #csr ", %0" : : "r"((unsigned long)(bits)) : "memory")
#define csr_clear(csr, bits) __asm__ volatile("csrc " #csr ", %0" : : "r"((unsigned long)(bits)) : "memory")
