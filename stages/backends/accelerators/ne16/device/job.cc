#include "job.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace ne16 {

using firmline::Operation;
using firmline::Spans;

template <typename T> T L1::get(uint32_t address) const
{
  T value;
  std::memcpy(&value, content.data() + (address - base), sizeof value);
  return value;
}

namespace {

constexpr int PLANE = 2;  // bytes of 16 input channels at one tap

int32_t low32(int64_t x) { return int32_t(uint32_t(uint64_t(x))); }
int64_t low48(int64_t x) { return int64_t(uint64_t(x) << 16) >> 16; }
int padded(int channels) { return (channels + KI_TILE - 1) / KI_TILE * KI_TILE; }

int32_t dot(const int16_t *a, const int16_t *b, int count)
{
  int32_t sum = 0;
  for (int k = 0; k < count; k++) sum += int32_t(a[k]) * b[k];
  return sum;
}

}  // namespace

Job::Source Job::source(int i, int j, int y, int x) const
{
  const bool last_row = i == task.rows.count - 1, last_column = j == task.columns.count - 1;
  const int size = task.patch();
  if (y >= task.rows.size(i, PIXELS) + task.kernel - 1 || x >= task.columns.size(j, PIXELS) + task.kernel - 1)
    return Source::Nothing;
  if (last_row && y >= task.patch_rows) return Source::Zero;
  if (last_column && x >= task.patch_columns) return Source::Zero;
  const Edges &pad = task.padding;
  const bool row = (i == 0 && y < pad.top) || (last_row && y >= size - pad.bottom);
  const bool column = (j == 0 && x < pad.left) || (last_column && x >= size - pad.right);
  return row || column ? Source::Value : Source::Memory;
}

uint32_t Job::input_at(int i, int j, int y, int x) const
{
  return task.word(INFEAT) + uint32_t(PIXELS * i + y) * task.word(INFEAT_D1) + uint32_t(PIXELS * j + x) * task.word(INFEAT_D0);
}

uint32_t Job::output_at(int y, int x) const
{
  return uint32_t(y) * task.word(OUTFEAT_D2) + uint32_t(x) * task.word(OUTFEAT_D1);
}

// The values of a subtile of channels begin at its first output, and are 4 bytes apart.
uint32_t Job::streamed_at(uint32_t pixel, int channel) const
{
  const int tile = channel / task.ko_tile, within = channel % task.ko_tile;
  return task.word(OUTFEAT) + pixel + uint32_t(tile * task.ko_tile * task.output_bits / 8 + within * 4);
}

// The sum of all taps of 16 input channels, for one bit of the weights.
uint32_t Job::plane_at(int output, int tile, int bit) const
{
  const uint32_t d0 = task.word(WEIGHTS_D0), start = task.word(WEIGHTS) + uint32_t(output) * task.word(WEIGHTS_D1);
  return task.kernel == 3 ? start + uint32_t(tile * task.weight_bits + bit) * d0 : start + uint32_t(tile) * d0 + uint32_t(bit * PLANE);
}

// Every output pixel: its subtile, its position in the subtile, and its position in the output.
template <typename Use> void Job::each_output(Use use) const
{
  const int step = task.stride2 ? 2 : 1;
  for (int i = 0; i < task.rows.count; i++)
    for (int j = 0; j < task.columns.count; j++)
      for (int y = 0; y < task.rows.size(i, PIXELS); y += step)
        for (int x = 0; x < task.columns.size(j, PIXELS); x += step) use(i, j, y, x, output_at(PIXELS * i + y, PIXELS * j + x));
}

template <typename Use> void Job::each_plane(Use use) const
{
  const int outputs = task.depthwise() ? 1 : task.output_channels();
  const int tiles = task.depthwise() ? task.ko.count : task.ki.count;
  for (int o = 0; o < outputs; o++)
    for (int t = 0; t < tiles; t++)
      for (int b = 0; b < task.weight_bits; b++) use(o, t, b);
}

std::string Job::claim(const L1 &l1, Operation &operation)
{
  std::string wrong;
  const auto claim = [&](Spans &spans, Word name, uint32_t address, uint64_t bytes) {
    if (l1.has(address, bytes))
      spans.add(address, bytes);
    else if (wrong.empty())
      wrong = std::string(NAMES[name]) + ": " + std::to_string(bytes) + " bytes at " + firmline::hexadecimal(address) +
              " lie outside of L1";
  };
  const int channels = task.output_channels();
  Spans &reads = operation.reads, &writes = operation.writes;
  for (int i = 0; i < task.rows.count; i++)
    for (int j = 0; j < task.columns.count; j++)
      for (int y = 0; y < task.patch(); y++)
        for (int x = 0; x < task.patch(); x++)
          if (source(i, j, y, x) == Source::Memory) claim(reads, INFEAT, input_at(i, j, y, x), task.input_channels());
  const int taps = task.kernel * task.kernel;
  each_plane([&](int o, int t, int b) { claim(reads, WEIGHTS, plane_at(o, t, b), taps * PLANE); });
  if (task.normalizes) claim(reads, SCALE, task.word(SCALE), channels * task.scale_bits / 8);
  if (task.normalizes && task.has_shifts) claim(reads, SCALE_SHIFT, task.word(SCALE_SHIFT), channels);
  if (task.normalizes && task.has_bias) claim(reads, SCALE_BIAS, task.word(SCALE_BIAS), channels * 4);
  if (task.tflite) claim(reads, PARAMETERS, task.word(PARAMETERS), block_words() * 4);
  // Rows may overlap where the same input pixel gives the same output pixel again.
  std::map<uint32_t, uint32_t> input_of;
  each_output([&](int i, int j, int y, int x, uint32_t pixel) {
    if (task.kernel == 1 && !task.streams_in) {
      const auto known = input_of.emplace(pixel, input_at(i, j, y, x));
      if (!known.second && known.first->second == input_at(i, j, y, x)) return;
    }
    claim(writes, OUTFEAT, task.word(OUTFEAT) + pixel, channels * task.output_bits / 8);
    if (task.has_residual) claim(reads, RESIDUAL, task.word(RESIDUAL) + pixel, channels);
    for (int c = 0; task.streams_in && c < channels; c += task.ko_tile)
      claim(reads, OUTFEAT, streamed_at(pixel, c), 4 * std::min(task.ko_tile, channels - c));
  });
  if (wrong.empty() && writes.bytes() != writes.bytes_added())
    wrong = std::string(NAMES[OUTFEAT_D1]) + ", " + NAMES[OUTFEAT_D2] + ": output pixels of " + std::to_string(channels) +
            " channels overlap";
  return wrong;
}

// [output][tap][input channel], or [tap][channel]; 0 where the kernel is masked and beyond the last channel.
std::vector<int16_t> Job::weights(const L1 &l1) const
{
  const int size = task.kernel, taps = size * size, inputs = padded(task.input_channels());
  const int outputs = task.depthwise() ? 1 : task.output_channels();
  std::vector<int16_t> found(size_t(outputs) * taps * inputs);
  each_plane([&](int o, int t, int b) {
    const uint32_t plane = plane_at(o, t, b);
    for (int tap = 0; tap < taps; tap++) {
      const unsigned bits = l1.get<uint16_t>(plane + uint32_t(tap * PLANE));
      int16_t *to = &found[(size_t(o) * taps + tap) * inputs + t * KI_TILE];
      for (int c = 0; c < KI_TILE; c++) to[c] = int16_t(to[c] + ((bits >> c & 1) << b));
    }
  });
  const Edges &mask = task.mask;
  for (int o = 0; o < outputs; o++)
    for (int tap = 0; tap < taps; tap++) {
      const int ky = tap / size, kx = tap % size;
      const bool on = ky >= mask.top && ky < size - mask.bottom && kx >= mask.left && kx < size - mask.right;
      int16_t *each = &found[(size_t(o) * taps + tap) * inputs];
      for (int c = 0; c < inputs; c++)
        each[c] = on && c < task.input_channels() ? int16_t(each[c] + task.weight_offset) : int16_t(0);
    }
  return found;
}

void Job::load_patch(const L1 &l1, int i, int j, std::vector<int16_t> &patch) const
{
  const int size = task.patch(), channels = task.input_channels(), stride = padded(channels);
  patch.assign(size_t(size) * size * stride, 0);
  for (int y = 0; y < size; y++)
    for (int x = 0; x < size; x++) {
      int16_t *to = &patch[(size_t(y) * size + x) * stride];
      const Source from = source(i, j, y, x);
      if (from == Source::Value) std::fill(to, to + channels, int16_t(task.pad_value));
      if (from != Source::Memory) continue;
      const uint8_t *bytes = l1.content.data() + (input_at(i, j, y, x) - l1.base);
      for (int c = 0; c < channels; c++) to[c] = task.is_signed_input ? int16_t(int8_t(bytes[c])) : int16_t(bytes[c]);
    }
}

int64_t Job::sum(const std::vector<int16_t> &patch, const std::vector<int16_t> &weights, int y, int x, int channel) const
{
  const int size = task.kernel, taps = size * size, inputs = padded(task.input_channels());
  int64_t found = 0;
  for (int tap = 0; tap < taps; tap++) {
    const int16_t *pixel = &patch[(size_t(y + tap / size) * task.patch() + x + tap % size) * inputs];
    if (task.depthwise())
      found += int64_t(pixel[channel]) * weights[size_t(tap) * inputs + channel];
    else
      found += dot(pixel, &weights[(size_t(channel) * taps + tap) * inputs], inputs);
  }
  return found;
}

int64_t Job::saturated(int64_t value) const
{
  const int bits = task.output_bits;
  if (bits == 32) {
    if (!task.is_signed) return std::max<int64_t>(value, 0);
    return task.has_shifts || task.shift ? std::clamp<int64_t>(value, INT32_MIN, INT32_MAX) : low32(value);
  }
  const int64_t low = task.is_signed ? -(int64_t(1) << (bits - 1)) : 0;
  return std::clamp<int64_t>(value, low, low + (int64_t(1) << bits) - 1);
}

// `sum` in the output's format.
int64_t Job::normalized(const L1 &l1, int64_t sum, int channel, bool &wrapped) const
{
  const int32_t accumulator = low32(sum);
  wrapped = accumulator != sum;
  if (!task.normalizes) return accumulator;
  const uint32_t c = uint32_t(channel), at = task.word(SCALE) + c * uint32_t(task.scale_bits / 8);
  const int32_t bias = task.has_bias ? l1.get<int32_t>(task.word(SCALE_BIAS) + 4 * c) : 0;
  if (task.tflite) {
    const int64_t biased = int64_t(accumulator) + bias;
    wrapped |= low32(biased) != biased;
    const int shift = l1.get<int8_t>(task.word(SCALE_SHIFT) + c);
    return block.requantized(low32(biased), l1.get<int32_t>(at), shift, task.rounds_once);
  }
  const uint32_t scale = task.scale_bits == 8    ? l1.get<uint8_t>(at)
                         : task.scale_bits == 16 ? l1.get<uint16_t>(at)
                                                 : l1.get<uint32_t>(at);
  const int64_t product = accumulator * int64_t(scale);
  int64_t value = task.has_bias ? low32(product) : low48(product);
  wrapped |= value != product;
  if (task.has_bias) {
    const int64_t biased = value + bias;
    value = low32(biased);
    wrapped |= value != biased;
  }
  return saturated(value >> (task.has_shifts ? l1.get<uint8_t>(task.word(SCALE_SHIFT) + c) & 63 : task.shift));
}

// The requantizer shifts by -31 to 30 places.
std::string Job::wrong_shift(const L1 &l1) const
{
  const auto wrong = [](int shift) { return shift < -31 || shift > 30; };
  for (int c = 0; c < task.output_channels(); c++)
    if (int shift = l1.get<int8_t>(task.word(SCALE_SHIFT) + uint32_t(c)); wrong(shift))
      return std::string(NAMES[SCALE_SHIFT]) + ": channel " + std::to_string(c) + " shifts by " + std::to_string(shift);
  if (task.has_residual && (wrong(block.own_shift) || wrong(block.other_shift) || wrong(block.total_shift)))
    return std::string(NAMES[PARAMETERS]) + ": a shift beyond -31 to 30";
  return "";
}

std::string Job::compute(const L1 &l1, Operation &operation, Counts &counts)
{
  const int channels = task.output_channels(), size = task.output_bits / 8;
  if (task.tflite) {
    std::memcpy(&block, l1.content.data() + (task.word(PARAMETERS) - l1.base), size_t(block_words()) * 4);
    if (std::string wrong = wrong_shift(l1); !wrong.empty()) return wrong;
  }
  const std::vector<int16_t> weights = this->weights(l1);
  std::vector<int16_t> patch;
  std::vector<uint8_t> pixel_bytes(size_t(channels) * size);
  int loaded_i = -1, loaded_j = -1;
  each_output([&](int i, int j, int y, int x, uint32_t pixel) {
    if (i != loaded_i || j != loaded_j) load_patch(l1, loaded_i = i, loaded_j = j, patch);
    for (int c = 0; c < channels; c++) {
      const int64_t start = task.streams_in ? l1.get<int32_t>(streamed_at(pixel, c)) : 0;
      bool wrapped = false;
      int64_t value = normalized(l1, start + sum(patch, weights, y, x, c), c, wrapped);
      if (task.has_residual) {
        const uint8_t other = l1.get<uint8_t>(task.word(RESIDUAL) + pixel + uint32_t(c));
        value = block.added(int32_t(value), task.is_signed ? int8_t(other) : int(other));
      }
      counts.wrapped += wrapped;
      std::memcpy(&pixel_bytes[size_t(c) * size], &value, size_t(size));
    }
    operation.result(task.word(OUTFEAT) + pixel, pixel_bytes.data(), pixel_bytes.size());
    counts.macs += uint64_t(channels) * (task.depthwise() ? 1 : task.input_channels()) * task.kernel * task.kernel;
  });
  counts.read += operation.reads.bytes();
  counts.written += operation.writes.bytes();
  return "";
}

}  // namespace ne16
