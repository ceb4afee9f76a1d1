// How an instruction of the plug-in is declared: its name, its encoding and a type whose `run` is its meaning.
#pragma once

#include <cstdint>
#include <vector>

#include "extension.h"
#include "lanes.h"
#include "processor.h"

namespace rvp {

struct Operands {
  uint64_t rd, rs1, rs2;  // on RV32, a register pair where the instruction has one
  uint64_t rs3;           // meaningful for instructions with four operands only
  unsigned immediate;     // the field of rs2
};

struct Encoding {
  uint32_t match, mask;
};

constexpr uint32_t OP_P = 0x77, OP = 0x33, OP_IMM = 0x13;

// rd, rs1, rs2
constexpr Encoding r_type(uint32_t funct7, uint32_t funct3, uint32_t opcode = OP_P) {
  return {funct7 << 25 | funct3 << 12 | opcode, 0xfe00707f};
}
// rd, rs1, rs2, rs3
constexpr Encoding r4_type(uint32_t funct2, uint32_t funct3, uint32_t opcode) {
  return {funct2 << 25 | funct3 << 12 | opcode, 0x0600707f};
}
// rd, rs1; the field of rs2 belongs to the operation
constexpr Encoding unary(uint32_t funct7, uint32_t field, uint32_t funct3 = 0, uint32_t opcode = OP_P) {
  return {funct7 << 25 | field << 20 | funct3 << 12 | opcode, 0xfff0707f};
}
// rd, rs1, immediate of 2 to 6 bits; `high` are the bits between it and the top of the word
constexpr Encoding imm(int bits, uint32_t high, uint32_t funct3) {
  return {high << (20 + bits) | funct3 << 12 | OP_P, ~0u << (20 + bits) | 0x0000707f};
}

enum class Xlen { both, rv64, rv32 };

// Which operands are even/odd pairs of registers on RV32 (64 bits in all cases on RV64).
enum class Pairs { none, rd, rd_rs1, all };

struct Instruction {
  const char* name;
  Encoding encoding;
  Xlen xlen;
  insn_func_t rv32, rv64, rv32_logged, rv64_logged;
};

inline uint64_t read_pair(processor_t* p, size_t reg) {
  if (reg & 1) throw trap_illegal_instruction(0);  // odd registers are reserved
  auto& x = p->get_state()->XPR;
  return reg == 0 ? 0 : uint64_t(uint32_t(x[reg])) | uint64_t(x[reg + 1]) << 32;
}

template <bool LOGGED>
void write_register(processor_t* p, size_t reg, uint64_t value) {
  state_t* state = p->get_state();
  if (LOGGED) state->log_reg_write[reg << 4] = {value, 0};
  state->XPR.write(reg, value);
}

template <class Semantics, Pairs PAIRS, int XLEN, bool LOGGED>
reg_t execute(processor_t* p, insn_t insn, reg_t pc) {
  constexpr bool pair_rd = XLEN == 32 && PAIRS != Pairs::none;
  constexpr bool pair_rs1 = XLEN == 32 && (PAIRS == Pairs::rd_rs1 || PAIRS == Pairs::all);
  constexpr bool pair_rs2 = XLEN == 32 && PAIRS == Pairs::all;
  auto& x = p->get_state()->XPR;
  Operands operands{
      pair_rd ? read_pair(p, insn.rd()) : x[insn.rd()],
      pair_rs1 ? read_pair(p, insn.rs1()) : x[insn.rs1()],
      pair_rs2 ? read_pair(p, insn.rs2()) : x[insn.rs2()],
      x[insn.rs3()],
      unsigned(insn.rs2()) | unsigned(insn.bits() >> 20 & 0x20),
  };
  uint64_t result = Semantics::template run<XLEN>(operands);
  if (pair_rd) {
    if (insn.rd() != 0) {
      write_register<LOGGED>(p, insn.rd(), sign_extend(result, 32));
      write_register<LOGGED>(p, insn.rd() + 1, sign_extend(result >> 32, 32));
    }
  } else {
    write_register<LOGGED>(p, insn.rd(), XLEN == 32 ? sign_extend(result, 32) : result);
  }
  if (overflowed) {
    overflowed = false;
    p->get_state()->csrmap[CSR_VXSAT]->write(1);
  }
  return pc + 4;
}

template <class Semantics, Pairs PAIRS = Pairs::none>
Instruction instruction(const char* name, Encoding encoding, Xlen xlen = Xlen::both) {
  return {name,
          encoding,
          xlen,
          execute<Semantics, PAIRS, 32, false>,
          execute<Semantics, PAIRS, 64, false>,
          execute<Semantics, PAIRS, 32, true>,
          execute<Semantics, PAIRS, 64, true>};
}

// One list per group, each in a file of its own.
std::vector<Instruction> simd_instructions();
std::vector<Instruction> shift_instructions();
std::vector<Instruction> dot_instructions();
std::vector<Instruction> halfword_instructions();
std::vector<Instruction> word_instructions();
std::vector<Instruction> wide_instructions();
std::vector<Instruction> pack_instructions();
std::vector<Instruction> scalar_instructions();

}  // namespace rvp
