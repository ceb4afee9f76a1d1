// Decodes the 24 words of a job, which stages/backends/accelerators/ne16/words.py encodes.
#pragma once

#include <array>
#include <cstdint>

namespace ne16 {

constexpr int WORDS = 24;
constexpr int PIXELS = 3;  // output rows and columns of a subtile
constexpr int KI_TILE = 16, KO_TILE = 32;

enum Word {
  WEIGHTS, INFEAT, OUTFEAT, SCALE, SCALE_SHIFT, SCALE_BIAS,
  INFEAT_D0, INFEAT_D1, RESIDUAL, OUTFEAT_D0, OUTFEAT_D1, OUTFEAT_D2,
  WEIGHTS_D0, WEIGHTS_D1, PARAMETERS,
  REM_KO_KI, REM_HO_WO, REM_HI_WI, NUMBER_KO_KI, NUMBER_HO_WO,
  PADDING, WEIGHT_OFFSET, FILTER_MASK, CONF0
};

extern const char *const NAMES[WORDS];

enum class Mode { CONV3X3, DEPTHWISE, CONV1X1 };

// The number of subtiles, and the size of the last.
struct Tiles {
  int count, last;
  int size(int index, int whole) const { return index == count - 1 ? last : whole; }
  int all(int whole) const { return (count - 1) * whole + last; }
};

// Rows or columns at each side.
struct Edges {
  int top, right, bottom, left;
};

struct Task {
  std::array<uint32_t, WORDS> words;

  Mode mode;
  int kernel;  // rows and columns: 3 or 1
  int weight_bits, weight_offset;
  int output_bits, scale_bits, shift;
  bool normalizes, stride2, streams_in, is_signed, has_shifts, has_bias;
  bool is_signed_input, tflite, rounds_once, has_residual;
  Tiles ko, ki, rows, columns;
  int ko_tile;
  int patch_rows, patch_columns;  // in the last patch; rows and columns after them are zero
  Edges padding, mask;
  int pad_value;

  bool depthwise() const { return mode == Mode::DEPTHWISE; }
  int patch() const { return PIXELS + kernel - 1; }
  int output_channels() const { return ko.all(ko_tile); }
  int input_channels() const { return depthwise() ? output_channels() : ki.all(KI_TILE); }
  uint32_t word(Word index) const { return words[index]; }
};

// The fields of 24 words. `why` names a register that contradicts another or is not modelled; it is empty if there is none.
Task decoded(const std::array<uint32_t, WORDS> &words, const char *&why);

}  // namespace ne16
