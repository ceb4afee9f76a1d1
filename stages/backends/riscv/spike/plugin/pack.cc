
// Moving halves and bytes between lanes.
#include "instruction.h"

namespace rvp {
namespace {

// Every 2*Part-wide lane of rd becomes {part A of rs1, part B of rs2}, the former on top; 0 is the bottom part.
template <class Part, int A, int B>
struct Pack {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return map_lanes<XLEN, Part>(
        [&](int i) { return i & 1 ? lane<Part>(o.rs1, i - 1 + A) : lane<Part>(o.rs2, i + B); });
  }
};

// Each word of rd becomes {byte TOP, byte BOTTOM} of that word of rs1, extended to 16 bits.
template <class Byte, int TOP, int BOTTOM>
struct Unpack {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return map_lanes<XLEN, int16_t>(
        [&](int half) { return lane<Byte>(o.rs1, 4 * (half / 2) + (half & 1 ? TOP : BOTTOM)); });
  }
};

struct InsertByte {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    int at = o.immediate & (XLEN / 8 - 1);
    return (o.rd & ~place<uint8_t>(-1, at)) | place<uint8_t>(o.rs1, at);
  }
};

// Swaps the bytes of each half.
struct SwapBytes {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return map_lanes<XLEN, uint8_t>([&](int i) { return lane<uint8_t>(o.rs1, i ^ 1); });
  }
};

// Bit by bit: rs1 where rs2 is 1, rs3 where it is 0.
struct Mix {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return (o.rs1 & o.rs2) | (o.rs3 & ~o.rs2);
  }
};

// rd = {half of rs1 on the bottom, half of rs2 on top}, both their bottom (PART 0) or top (PART 1) half registers.
// Bit-manipulation instructions that the draft includes: on RV32 they replace PKBB16 and PKTT16, on RV64
// for PKBB32 and PKTT32, with the sources exchanged.
template <int PART>
struct PackRegisters {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    constexpr int half = XLEN / 2;
    constexpr uint64_t mask = (uint64_t(1) << half) - 1;
    return (o.rs1 >> (PART * half) & mask) | (o.rs2 >> (PART * half) & mask) << half;
  }
};

}  // namespace

std::vector<Instruction> pack_instructions() {
  return {
      instruction<Pack<int16_t, 0, 0>>("pkbb16", r_type(0x07, 1), Xlen::rv64),
      instruction<Pack<int16_t, 0, 1>>("pkbt16", r_type(0x0f, 1)),
      instruction<Pack<int16_t, 1, 0>>("pktb16", r_type(0x1f, 1)),
      instruction<Pack<int16_t, 1, 1>>("pktt16", r_type(0x17, 1), Xlen::rv64),
      instruction<Pack<int32_t, 0, 1>>("pkbt32", r_type(0x0f, 2), Xlen::rv64),
      instruction<Pack<int32_t, 1, 0>>("pktb32", r_type(0x1f, 2), Xlen::rv64),
      instruction<Unpack<int8_t, 1, 0>>("sunpkd810", unary(0x56, 0x08)),
      instruction<Unpack<int8_t, 2, 0>>("sunpkd820", unary(0x56, 0x09)),
      instruction<Unpack<int8_t, 3, 0>>("sunpkd830", unary(0x56, 0x0a)),
      instruction<Unpack<int8_t, 3, 1>>("sunpkd831", unary(0x56, 0x0b)),
      instruction<Unpack<int8_t, 3, 2>>("sunpkd832", unary(0x56, 0x13)),
      instruction<Unpack<uint8_t, 1, 0>>("zunpkd810", unary(0x56, 0x0c)),
      instruction<Unpack<uint8_t, 2, 0>>("zunpkd820", unary(0x56, 0x0d)),
      instruction<Unpack<uint8_t, 3, 0>>("zunpkd830", unary(0x56, 0x0e)),
      instruction<Unpack<uint8_t, 3, 1>>("zunpkd831", unary(0x56, 0x0f)),
      instruction<Unpack<uint8_t, 3, 2>>("zunpkd832", unary(0x56, 0x17)),
      instruction<InsertByte>("insb", imm(3, 0x158, 0), Xlen::rv64),
      instruction<InsertByte>("insb", imm(2, 0x2b0, 0), Xlen::rv32),
      instruction<SwapBytes>("rev8.h", unary(0x34, 0x08, 5, OP_IMM)),
      instruction<Mix>("cmix", r4_type(3, 1, OP)),
      instruction<PackRegisters<0>>("pack", r_type(0x04, 4, OP)),
      instruction<PackRegisters<1>>("packu", r_type(0x24, 4, OP)),
  };
}

}  // namespace rvp
