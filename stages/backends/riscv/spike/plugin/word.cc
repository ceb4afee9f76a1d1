
// Multiplication of 32-bit lanes keeping the most significant word, and of 32-bit lanes by 16-bit halves keeping bits
// 47 to 16 (or, doubled, 46 to 15).
#include "halves.h"
#include "instruction.h"

namespace rvp {
namespace {

enum Rounding { truncate, round };  // `round` adds half of the last bit kept: the instructions named *.u
enum Half { bottom, top };

// rd.W = FUNCTION(rs1.W, rs2, index of the lane, rd.W)
template <auto FUNCTION>
struct Words {
  template <int XLEN>
  static uint64_t run(const Operands& o) {
    return map_lanes<XLEN, int32_t>([&](int word) {
      return FUNCTION(int64_t(lane<int32_t>(o.rs1, word)), o.rs2, word, int64_t(lane<int32_t>(o.rd, word)));
    });
  }
};

int64_t shift(Rounding rounding, int64_t product, int amount) {
  return rounding == round ? rounding_shift_right(product, amount) : product >> amount;
}
int64_t factor(Half half, uint64_t reg, int word) { return lane<int16_t>(reg, 2 * word + half); }

// 32 x 32 bits. -2^31 * -2^31 doubled is the one product that saturates.
template <Rounding ROUNDING>
constexpr auto high_product = [](int64_t x, uint64_t rs2, int word, int64_t) {
  return shift(ROUNDING, x * lane<int32_t>(rs2, word), 32);
};
template <Rounding ROUNDING>
constexpr auto doubled_product = [](int64_t x, uint64_t rs2, int word, int64_t) {
  return saturate<int32_t>(shift(ROUNDING, x * lane<int32_t>(rs2, word), 31));
};
template <Sign SIGN, Rounding ROUNDING>
constexpr auto accumulate_high = [](int64_t x, uint64_t rs2, int word, int64_t accumulator) {
  return saturate<int32_t>(accumulator + SIGN * high_product<ROUNDING>(x, rs2, word, 0));
};

// 32 x 16 bits
template <Half HALF, Rounding ROUNDING>
constexpr auto by_half = [](int64_t x, uint64_t rs2, int word, int64_t) {
  return shift(ROUNDING, x * factor(HALF, rs2, word), 16);
};
template <Half HALF, Rounding ROUNDING>
constexpr auto doubled_by_half = [](int64_t x, uint64_t rs2, int word, int64_t) {
  return saturate<int32_t>(shift(ROUNDING, x * factor(HALF, rs2, word), 15));
};
template <Half HALF, Rounding ROUNDING>
constexpr auto accumulate_by_half = [](int64_t x, uint64_t rs2, int word, int64_t accumulator) {
  return saturate<int32_t>(accumulator + by_half<HALF, ROUNDING>(x, rs2, word, 0));
};
template <Half HALF, Rounding ROUNDING>
constexpr auto accumulate_doubled_by_half = [](int64_t x, uint64_t rs2, int word, int64_t accumulator) {
  return saturate<int32_t>(accumulator + doubled_by_half<HALF, ROUNDING>(x, rs2, word, 0));
};

}  // namespace

std::vector<Instruction> word_instructions() {
  return {
      instruction<Words<high_product<truncate>>>("smmul", r_type(0x20, 1), Xlen::rv64),
      instruction<Words<high_product<round>>>("smmul.u", r_type(0x28, 1)),
      instruction<Words<doubled_product<truncate>>>("kwmmul", r_type(0x31, 1)),
      instruction<Words<doubled_product<round>>>("kwmmul.u", r_type(0x39, 1)),
      instruction<Words<accumulate_high<plus, truncate>>>("kmmac", r_type(0x30, 1)),
      instruction<Words<accumulate_high<plus, round>>>("kmmac.u", r_type(0x38, 1)),
      instruction<Words<accumulate_high<minus, truncate>>>("kmmsb", r_type(0x21, 1)),
      instruction<Words<accumulate_high<minus, round>>>("kmmsb.u", r_type(0x29, 1)),
      instruction<Words<by_half<bottom, truncate>>>("smmwb", r_type(0x22, 1)),
      instruction<Words<doubled_by_half<bottom, truncate>>>("kmmwb2", r_type(0x47, 1)),
      instruction<Words<accumulate_by_half<bottom, truncate>>>("kmmawb", r_type(0x23, 1)),
      instruction<Words<accumulate_doubled_by_half<bottom, truncate>>>("kmmawb2", r_type(0x67, 1)),
      instruction<Words<by_half<bottom, round>>>("smmwb.u", r_type(0x2a, 1)),
      instruction<Words<doubled_by_half<bottom, round>>>("kmmwb2.u", r_type(0x4f, 1)),
      instruction<Words<accumulate_by_half<bottom, round>>>("kmmawb.u", r_type(0x2b, 1)),
      instruction<Words<accumulate_doubled_by_half<bottom, round>>>("kmmawb2.u", r_type(0x6f, 1)),
      instruction<Words<by_half<top, truncate>>>("smmwt", r_type(0x32, 1)),
      instruction<Words<doubled_by_half<top, truncate>>>("kmmwt2", r_type(0x57, 1)),
      instruction<Words<accumulate_by_half<top, truncate>>>("kmmawt", r_type(0x33, 1)),
      instruction<Words<accumulate_doubled_by_half<top, truncate>>>("kmmawt2", r_type(0x77, 1)),
      instruction<Words<by_half<top, round>>>("smmwt.u", r_type(0x3a, 1)),
      instruction<Words<doubled_by_half<top, round>>>("kmmwt2.u", r_type(0x5f, 1)),
      instruction<Words<accumulate_by_half<top, round>>>("kmmawt.u", r_type(0x3b, 1)),
      instruction<Words<accumulate_doubled_by_half<top, round>>>("kmmawt2.u", r_type(0x7f, 1)),
  };
}

}  // namespace rvp
