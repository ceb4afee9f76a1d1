// outer16's registers and what a job does. Words from the base on:
//
//    0  INPUT, 1 OUTPUT, 2 CONSTANTS   addresses in L1: the first row inside of the image, the first output, packing.py
//    3  bytes from one block of 16 input channels to the next      4  of output channels
//    5  rows and columns of the input        6  of the output                            (halves, the first in the top)
//    7  blocks of input channels, output channels
//    8  kernel height and width, stride down and right                                   (bytes, the first in the top)
//    9  taps apart down and right, rows of padding above, columns on the left
//   10  input zero point, output zero point, least and greatest output (signed)
//   11  bit 0 depthwise, bit 1 results are rounded once, as TFLite's fully connected layers are
//   16  READY  read: whether a job can be started; the engine runs one and holds another
//   17  START  write: the words are a job        18  DONE  read: jobs done since RESET        19  RESET  write
#include <array>
#include <deque>

#include "registers.h"

using namespace firmline;

namespace {
constexpr uint32_t BLOCK = 16, BEGIN = 20, PORT = 16, PARAMETERS = 3 * 4 * BLOCK;

uint32_t blocks(uint32_t channels) { return (channels + BLOCK - 1) / BLOCK; }

struct Job {
  uint32_t input, output, constants, in_block, out_block, rows, columns, out_rows, out_columns, in_blocks, channels;
  int32_t kernel_h, kernel_w, stride_h, stride_w, spread_h, spread_w, above, left;
  int32_t zero, out_zero, least, greatest;
  bool depthwise, once;

  explicit Job(const std::array<uint32_t, 12> &w)
      : input(w[0]), output(w[1]), constants(w[2]), in_block(w[3]), out_block(w[4]), rows(w[5] >> 16),
        columns(w[5] & 0xffff), out_rows(w[6] >> 16), out_columns(w[6] & 0xffff), in_blocks(w[7] >> 16),
        channels(w[7] & 0xffff), kernel_h(w[8] >> 24), kernel_w(w[8] >> 16 & 255), stride_h(w[8] >> 8 & 255),
        stride_w(w[8] & 255), spread_h(w[9] >> 24), spread_w(w[9] >> 16 & 255), above(w[9] >> 8 & 255),
        left(w[9] & 255), zero(int8_t(w[10] >> 24)), out_zero(int8_t(w[10] >> 16)), least(int8_t(w[10] >> 8)),
        greatest(int8_t(w[10])), depthwise(w[11] & 1), once(w[11] & 2)
  {
  }

  uint32_t pixels() const { return out_rows * out_columns; }
  uint32_t products() const { return kernel_h * kernel_w * (depthwise ? 1 : in_blocks); }
  uint32_t weights() const { return products() * BLOCK * (depthwise ? 1 : BLOCK); }
  // As stages/backends/accelerators/outer16/cycles.py.
  uint64_t cycles() const
  {
    return BEGIN + blocks(channels) * (PARAMETERS / PORT + uint64_t(blocks(pixels())) * (BLOCK * products() + BLOCK));
  }
};

// The reference's arithmetic: a product of 64 bits rounded once, or to 32 bits and then to its place.
int32_t scaled(int32_t sum, int32_t multiplier, int32_t shift, bool once)
{
  const int64_t one = 1;
  if (once) return int32_t((int64_t(sum) * multiplier + (one << (30 - shift))) >> (31 - shift));
  const int32_t left = shift > 0 ? shift : 0, right = left - shift;
  const int32_t high = int32_t((int64_t(int32_t(uint32_t(sum) << left)) * multiplier + (one << 30)) >> 31);
  if (right == 0) return high;
  return int32_t((high + (one << (right - 1)) - (high < 0)) >> right);  // halves away from zero
}
}  // namespace

class outer16_t : public Registers {
 public:
  explicit outer16_t(const Given &given) : Registers("outer16")
  {
    given.only({"l1"});
    l1 = given.regions("l1").front();
  }

  reg_t size() override { return 0x1000; }

 protected:
  enum : uint32_t { WORDS = 12, READY = 16, START, DONE, RESET };

  bool read(uint32_t offset, uint32_t &value) override
  {
    const uint32_t at = offset / 4;
    if (at == READY)
      value = queue.size() < 2, polled(done, value);
    else if (at == DONE)
      value = done, polled(done, queue.empty());
    else if (at < WORDS)
      value = words[at];
    else
      return false;
    return true;
  }

  bool write(uint32_t offset, uint32_t value) override
  {
    const uint32_t at = offset / 4;
    if (at == START)
      start();
    else if (at == RESET)
      reset();
    else if (at < WORDS)
      words[at] = value;
    else
      return false;
    return true;
  }

 private:
  struct Queued {
    Job job;
    Running operation;
  };

  void start()
  {
    if (queue.size() == 2) machine.fault("outer16 START: two jobs are there already");
    Queued one{Job(words), std::make_shared<Operation>()};
    one.operation->unit = unit;
    one.operation->name = "job " + std::to_string(jobs++);
    claim(one);
    machine.commit(one.operation);
    queue.push_back(one);
    if (queue.size() == 1) begin_at(machine.now());
  }

  // The bytes that the job reads and writes.
  void claim(const Queued &one)
  {
    const Job &job = one.job;
    if (!job.pixels() || !job.channels || !job.products() || !job.stride_h || !job.stride_w)
      machine.fault("outer16 START: a job without pixels, channels or windows");
    if (job.depthwise && job.in_blocks != blocks(job.channels))
      machine.fault("outer16 START: depthwise, with other channels in than out");
    for (uint32_t block = 0; block < job.in_blocks; block++)
      add(one.operation->reads, "INPUT", job.input + block * job.in_block, job.rows * job.columns * BLOCK);
    add(one.operation->reads, "CONSTANTS", job.constants, blocks(job.channels) * (PARAMETERS + job.weights()));
    for (uint32_t block = 0; block < blocks(job.channels); block++) {
      const uint32_t lanes = std::min(BLOCK, job.channels - block * BLOCK);
      for (uint32_t pixel = 0; pixel < job.pixels(); pixel++)
        add(one.operation->writes, "OUTPUT", job.output + block * job.out_block + pixel * BLOCK, lanes);
    }
  }

  void add(Spans &spans, const char *which, uint32_t address, uint32_t bytes)
  {
    if (bytes && (address < l1.from || address + uint64_t(bytes) > l1.to))
      machine.fault("outer16 " + std::string(which) + ": " + std::to_string(bytes) + " bytes at " +
                    hexadecimal(address) + " lie outside of L1");
    spans.add(address, bytes);
  }

  void begin_at(uint64_t time)
  {
    machine.at(time, Order::BEGIN, [this, era = era](uint64_t now) { if (era == this->era) begin(now); });
  }

  void begin(uint64_t time)
  {
    const Queued &first = queue.front();
    machine.begin(first.operation, time);
    compute(first.job, *first.operation);
    machine.at(time + first.job.cycles(), Order::END, [this, era = era](uint64_t now) { if (era == this->era) end(now); });
  }

  void end(uint64_t time)
  {
    machine.done(queue.front().operation, time);
    queue.pop_front();
    done++;
    if (!queue.empty()) begin_at(time);
  }

  // Present jobs never end.
  void reset()
  {
    for (const Queued &one : queue) machine.cancel(one.operation);
    queue.clear();
    done = 0;
    era++;
  }

  void compute(const Job &job, Operation &operation)
  {
    memory.resize(l1.to - l1.from);
    machine.read(l1.from, memory.data(), memory.size());
    const int8_t *constants = at(job.constants);
    for (uint32_t block = 0; block < blocks(job.channels); block++, constants += PARAMETERS + job.weights()) {
      int32_t parameters[3][BLOCK];
      std::memcpy(parameters, constants, sizeof parameters);
      const uint32_t lanes = std::min(BLOCK, job.channels - block * BLOCK);
      for (uint32_t pixel = 0; pixel < job.pixels(); pixel++) {
        int8_t results[BLOCK];
        uint32_t sums[BLOCK] = {};
        add_products(job, block, pixel, constants + PARAMETERS, sums);
        for (uint32_t lane = 0; lane < lanes; lane++) {
          const int32_t sum = int32_t(sums[lane] + uint32_t(parameters[0][lane]));
          const int32_t result = scaled(sum, parameters[1][lane], parameters[2][lane], job.once) + job.out_zero;
          results[lane] = int8_t(std::min(std::max(result, job.least), job.greatest));
        }
        operation.result(job.output + block * job.out_block + pixel * BLOCK, results, lanes);
      }
      operation.amount += uint64_t(job.pixels()) * job.weights();
    }
  }

  // All products of a pixel and a block of output channels; what lies outside of the image is the zero point.
  void add_products(const Job &job, uint32_t block, uint32_t pixel, const int8_t *weights, uint32_t sums[BLOCK])
  {
    const int8_t outside[BLOCK] = {};
    const int32_t top = int32_t(pixel / job.out_columns) * job.stride_h - job.above;
    const int32_t side = int32_t(pixel % job.out_columns) * job.stride_w - job.left;
    for (int32_t tap = 0; tap < job.kernel_h * job.kernel_w; tap++) {
      const int32_t y = top + tap / job.kernel_w * job.spread_h, x = side + tap % job.kernel_w * job.spread_w;
      const bool inside = y >= 0 && y < int32_t(job.rows) && x >= 0 && x < int32_t(job.columns);
      const uint32_t place = job.input + (y * job.columns + x) * BLOCK;
      const int32_t more = inside ? 0 : job.zero;
      if (job.depthwise) {
        const int8_t *image = inside ? at(place + block * job.in_block) : outside;
        for (uint32_t lane = 0; lane < BLOCK; lane++) sums[lane] += (image[lane] + more) * *weights++;
        continue;
      }
      for (uint32_t in = 0; in < job.in_blocks; in++) {
        const int8_t *image = inside ? at(place + in * job.in_block) : outside;
        for (uint32_t channel = 0; channel < BLOCK; channel++, weights += BLOCK)
          for (uint32_t lane = 0; lane < BLOCK; lane++) sums[lane] += (image[channel] + more) * weights[lane];
      }
    }
  }

  const int8_t *at(uint32_t address) const { return memory.data() + (address - l1.from); }

  Span l1{};
  std::vector<int8_t> memory;
  std::array<uint32_t, WORDS> words{};
  std::deque<Queued> queue;
  uint32_t done = 0;
  uint64_t jobs = 0;
  int era = 0;  // ignores events of jobs before RESET
};

static outer16_t *parse(const void *, const sim_t *sim, reg_t *base, const std::vector<std::string> &texts)
{
  Machine::get().attach(sim);
  Given given("outer16", texts);
  *base = given.base();
  return new outer16_t(given);
}
static std::string generate(const sim_t *, const std::vector<std::string> &) { return ""; }
REGISTER_DEVICE(outer16, parse, generate)
