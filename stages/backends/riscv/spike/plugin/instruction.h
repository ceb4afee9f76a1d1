// Execution of a declared instruction in Spike: registers, pairs of registers on RV32, and vxsat.
#pragma once

#include <cstdint>
#include <vector>

#include "extension.h"
#include "processor.h"

namespace rvp {

// Set by saturating arithmetic, collected into vxsat.OV after the instruction.
inline bool overflowed = false;

// Sources. On RV32 64 bits of a register pair, else 32 bits without extension.
struct Operands {
  uint64_t d, a, b, c;
  int immediate;  // the bits from bit 20 on
};

struct Encoding {
  uint32_t match, mask;
};

// Which operands are even/odd pairs of registers on RV32.
struct Pairs {
  bool d, a, b;
};

struct Instruction {
  const char* name;
  Encoding encoding;
  insn_func_t rv32, rv64, rv32_logged, rv64_logged;  // null where the instruction does not exist
};

std::vector<Instruction> all_instructions();

// The first register of a pair. Odd ones are reserved, unless the mask has the low bit of the field.
inline size_t pair_of(size_t reg, bool is_coded) {
  if (reg & 1 && !is_coded) throw trap_illegal_instruction(0);
  return reg & ~size_t(1);
}

template <int XLEN>
uint64_t read(processor_t* p, size_t reg, bool is_pair, bool is_coded) {
  auto& x = p->get_state()->XPR;
  if (XLEN == 64) return x[reg];
  if (!is_pair) return uint32_t(x[reg]);
  reg = pair_of(reg, is_coded);
  return reg == 0 ? 0 : uint64_t(uint32_t(x[reg])) | uint64_t(x[reg + 1]) << 32;
}

template <bool LOGGED>
void write(processor_t* p, size_t reg, uint64_t value) {
  state_t* state = p->get_state();
  if (LOGGED) state->log_reg_write[reg << 4] = {value, 0};
  state->XPR.write(reg, value);
}

inline uint64_t extended(uint64_t value) { return uint64_t(int64_t(int32_t(value))); }

template <class Meaning, int XLEN, bool LOGGED>
reg_t execute(processor_t* p, insn_t insn, reg_t pc) {
  constexpr uint32_t mask = Meaning::encoding.mask;
  constexpr Pairs pairs = Meaning::pairs;
  Operands operands{
      read<XLEN>(p, insn.rd(), pairs.d, mask >> 7 & 1),
      read<XLEN>(p, insn.rs1(), pairs.a, mask >> 15 & 1),
      read<XLEN>(p, insn.rs2(), pairs.b, mask >> 20 & 1),
      read<XLEN>(p, insn.rs3(), false, false),
      int(insn.bits() >> 20 & 63),
  };
  uint64_t result = Meaning::template run<XLEN>(operands);
  if (XLEN == 32 && pairs.d) {
    size_t reg = pair_of(insn.rd(), mask >> 7 & 1);
    if (reg != 0) {
      write<LOGGED>(p, reg, extended(result));
      write<LOGGED>(p, reg + 1, extended(result >> 32));
    }
  } else {
    write<LOGGED>(p, insn.rd(), XLEN == 32 ? extended(result) : result);
  }
  if (overflowed) {
    overflowed = false;
    p->get_state()->csrmap[CSR_VXSAT]->write(1);
  }
  return pc + 4;
}

template <class Meaning, bool RV32, bool RV64>
Instruction instruction(const char* name) {
  Instruction made{name, Meaning::encoding, nullptr, nullptr, nullptr, nullptr};
  if constexpr (RV32) {
    made.rv32 = execute<Meaning, 32, false>;
    made.rv32_logged = execute<Meaning, 32, true>;
  }
  if constexpr (RV64) {
    made.rv64 = execute<Meaning, 64, false>;
    made.rv64_logged = execute<Meaning, 64, true>;
  }
  return made;
}

}  // namespace rvp
