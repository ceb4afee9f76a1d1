#include "task.h"

namespace ne16 {

const char *const NAMES[WORDS] = {
    "weights_ptr",       "infeat_ptr",        "outfeat_ptr",       "scale_ptr",         "scale_shift_ptr",
    "scale_bias_ptr",    "infeat_d0_stride",  "infeat_d1_stride",  "residual_ptr",      "outfeat_d0_stride",
    "outfeat_d1_stride", "outfeat_d2_stride", "weights_d0_stride", "weights_d1_stride", "parameters_ptr",
    "rem_ko_ki",         "rem_ho_wo",         "rem_hi_wi",         "number_ko_ki",      "number_ho_wo",
    "padding",           "weight_offset",     "filter_mask",       "conf0"};

namespace {

constexpr int BITS[4] = {8, 16, 32, 32};

// The size of the last subtile: a `rem` of 0 means a full subtile.
Tiles tiles(uint32_t number, uint32_t rem, int shift, int whole)
{
  const int last = rem >> shift & 0xffff;
  return {int(number >> shift & 0xffff), last ? last : whole};
}

const char *contradiction(const Task &task, uint32_t conf0)
{
  const bool is_1x1 = task.mode == Mode::CONV1X1;
  const Edges &pad = task.padding;
  if ((conf0 >> 5 & 3) == 3) return "conf0: mode 3 is none";
  if (conf0 >> 3 & 1) return "conf0: bit 3, 16-bit activations, is not modelled";
  if (conf0 >> 7 & 1) return "conf0: bit 7, linear mode, is not modelled";
  if (task.weight_bits < 2) return "conf0: weights of 1 bit";
  if ((conf0 >> 12 & 3) == 3) return "conf0: scale width 3 is none";
  if ((conf0 >> 21 & 3) == 3) return "conf0: output width 3 is none";
  if (!task.ko.count || !task.ki.count) return "number_ko_ki: no subtiles";
  if (!task.rows.count || !task.columns.count) return "number_ho_wo: no subtiles";
  if (task.ko.last > task.ko_tile) return "rem_ko_ki: more output channels than a subtile has";
  if (task.ki.last > KI_TILE) return "rem_ko_ki: more input channels than a subtile has";
  if (task.rows.last > PIXELS || task.columns.last > PIXELS) return "rem_ho_wo: more than the 3 of a subtile";
  if (task.patch_rows > task.patch() || task.patch_columns > task.patch()) return "rem_hi_wi: more than a patch has";
  if (task.depthwise() && task.ki.count != task.ko.count) return "number_ko_ki: depthwise, and Ki is not Ko";
  if (task.stride2 && (task.rows.count > 1 || task.columns.count > 1))
    return "number_ho_wo: stride 2 takes one subtile a job";
  if (is_1x1 && (pad.top || pad.right || pad.bottom || pad.left)) return "padding: there is none in 1x1";
  if (task.depthwise() && task.streams_in) return "conf0: stream-in of a depthwise job loses weight_offset";
  if (task.normalizes && task.scale_bits == 16 && task.has_shifts && !task.has_bias && !task.tflite)
    return "conf0: 16-bit scales with shifts and without bias take wrong shifts";
  if (task.tflite && !(task.normalizes && task.scale_bits == 32 && task.has_shifts && task.has_bias))
    return "conf0: the TFLite requantizer needs 32-bit scales, shifts and bias";
  if (task.tflite && task.output_bits != 8) return "conf0: the TFLite requantizer writes 8 bits";
  if (!task.tflite && (task.rounds_once || task.has_residual)) return "conf0: bits 28 and 29 belong to bit 27";
  return nullptr;
}

}  // namespace

Task decoded(const std::array<uint32_t, WORDS> &words, const char *&why)
{
  const uint32_t conf0 = words[CONF0], padding = words[PADDING], mask = words[FILTER_MASK];
  const auto flag = [conf0](int bit) { return bool(conf0 >> bit & 1); };
  const auto edges = [](uint32_t word, int top, int width) {
    const uint32_t all = (1u << width) - 1;
    const auto edge = [=](int number) { return int(word >> (top - number * width) & all); };
    return Edges{edge(0), edge(1), edge(2), edge(3)};
  };
  Task task{};
  task.words = words;
  task.mode = Mode(conf0 >> 5 & 3);
  task.kernel = task.mode == Mode::CONV1X1 ? 1 : 3;
  task.weight_bits = int(conf0 & 7) + 1;
  // Nine bits: the sign is bit 31.
  task.weight_offset = int(words[WEIGHT_OFFSET] & 0xff) - (words[WEIGHT_OFFSET] >> 31 ? 256 : 0);
  task.normalizes = flag(4);
  task.stride2 = flag(8);
  task.streams_in = flag(14);
  task.is_signed = flag(23);
  task.has_shifts = flag(24);
  task.has_bias = flag(25);
  task.is_signed_input = flag(26);
  task.tflite = flag(27);
  task.rounds_once = flag(28);
  task.has_residual = flag(29);
  task.output_bits = task.normalizes ? BITS[conf0 >> 21 & 3] : 32;
  task.scale_bits = BITS[conf0 >> 12 & 3];
  task.shift = conf0 >> 16 & 31;
  task.ko_tile = task.depthwise() ? KI_TILE : KO_TILE;
  task.ko = tiles(words[NUMBER_KO_KI], words[REM_KO_KI], 16, task.ko_tile);
  task.ki = tiles(words[NUMBER_KO_KI], words[REM_KO_KI], 0, KI_TILE);
  task.rows = tiles(words[NUMBER_HO_WO], words[REM_HO_WO], 16, PIXELS);
  task.columns = tiles(words[NUMBER_HO_WO], words[REM_HO_WO], 0, PIXELS);
  const int high = words[REM_HI_WI] >> 16, low = words[REM_HI_WI] & 0xffff;
  task.patch_rows = high ? high : task.patch();
  task.patch_columns = low ? low : task.patch();
  task.padding = edges(padding, 28, 4);
  task.mask = edges(mask, 24, 8);
  task.pad_value = task.is_signed_input ? int8_t(padding & 0xff) : int(padding & 0xff);
  why = contradiction(task, conf0);
  return task;
}

}  // namespace ne16
