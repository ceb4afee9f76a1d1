// A DMA engine: moves runs of bytes between memories while the core works, one transfer after the other.
//
//   0x00 SOURCE              address of the first run
//   0x04 DESTINATION
//   0x08 BYTES               of one run
//   0x0c RUNS
//   0x10 SOURCE_STRIDE       bytes from run to run
//   0x14 DESTINATION_STRIDE
//   0x18 QUEUE               written: the transfer is queued; read: the free places in the queue
//   0x1c UNFINISHED          transfers that are not done, the one under way among them; they end in their order
//   0x20 counters            64 bits each: cycles in use, bytes, transfers, cycles that the core waited
//
// A transfer of r runs with b bytes in all takes fixed_cycles + r * run_cycles + b / bytes_per_cycle, rounded up.
// It reads when it begins and writes when it is done. `written` are the regions that it may write.
#include <deque>

#include "registers.h"

using namespace firmline;

class dma_t : public Registers {
 public:
  explicit dma_t(const Given &given)
      : Registers("dma"), bytes_per_cycle(given.number("bytes_per_cycle")), fixed_cycles(given.number("fixed_cycles", 0)),
        run_cycles(given.number("run_cycles", 0)), most(given.number("queue", 4)), written(given.regions("written"))
  {
    given.only({"bytes_per_cycle", "fixed_cycles", "run_cycles", "queue", "written"});
    if (!bytes_per_cycle) machine.fault("dma: bytes_per_cycle is 0: it would never be done");
    if (!most) machine.fault("dma: a queue of 0 takes no transfer");
  }

  reg_t size() override { return 0x1000; }

 protected:
  bool read(uint32_t offset, uint32_t &value) override
  {
    if (offset < QUEUE)
      value = registers[offset / 4];
    else if (offset == QUEUE)
      value = uint32_t(most - queue.size()), polled(finished, value > 0);
    else if (offset == UNFINISHED)
      value = uint32_t(queue.size()), polled(finished, queue.empty());
    else
      return counter({busy, moved, finished, waited}, offset, COUNTERS, value);
    return true;
  }

  bool write(uint32_t offset, uint32_t value) override
  {
    if (offset > QUEUE) return false;
    if (offset == QUEUE)
      enqueue();
    else
      registers[offset / 4] = value;
    return true;
  }

 private:
  enum : uint32_t { QUEUE = 0x18, UNFINISHED = 0x1c, COUNTERS = 0x20 };

  struct Transfer {
    uint64_t source, destination, bytes, runs, source_stride, destination_stride;
    Running operation;
  };

  void enqueue()
  {
    if (queue.size() >= most) machine.fault("dma QUEUE: a transfer is queued and there is no free place");
    Transfer next{registers[0], registers[1], registers[2], registers[3], registers[4], registers[5],
                  std::make_shared<Operation>()};
    Operation &operation = *next.operation;
    operation.unit = unit;
    operation.name = "transfer " + std::to_string(accepted);
    if (!next.bytes || !next.runs) machine.fault("dma BYTES, RUNS: " + operation.name + " moves nothing");
    for (uint64_t run = 0; run < next.runs; run++) {
      add(operation, operation.reads, "SOURCE", next.source + run * next.source_stride, next.bytes);
      uint64_t to = next.destination + run * next.destination_stride;
      add(operation, operation.writes, "DESTINATION", to, next.bytes);
      if (!may_write(to, next.bytes))
        machine.fault("dma DESTINATION: " + operation.name + " writes " + hexadecimal(to) + ", which is read-only");
    }
    if (operation.writes.bytes() != operation.writes.bytes_added())
      machine.fault("dma DESTINATION_STRIDE: the runs of " + operation.name + " overlap");
    if (int64_t at = operation.reads.common(operation.writes); at >= 0)
      machine.fault("dma SOURCE, DESTINATION: " + operation.name + " reads and writes " + hexadecimal(at));
    operation.amount = next.bytes * next.runs;
    machine.commit(next.operation);
    queue.push_back(next);
    if (queue.size() == 1) machine.at(machine.now(), Order::BEGIN, [this](uint64_t time) { begin(time); });
    accepted++;
  }

  void add(const Operation &operation, Spans &spans, const char *what, uint64_t from, uint64_t bytes)
  {
    if (from + bytes > 1ull << 32 || !machine.has(from, bytes))
      machine.fault(std::string("dma ") + what + ": " + operation.name + " has " + std::to_string(bytes) + " bytes at " +
                    hexadecimal(from) + ", where not all is memory");
    spans.add(from, bytes);
  }

  bool may_write(uint64_t from, uint64_t bytes) const
  {
    for (const Span &region : written)
      if (region.from <= from && from + bytes <= region.to) return true;
    return false;
  }

  void begin(uint64_t time)
  {
    Transfer &first = queue.front();
    machine.begin(first.operation, time);
    std::vector<uint8_t> bytes(first.bytes);
    for (uint64_t run = 0; run < first.runs; run++) {
      machine.read(first.source + run * first.source_stride, bytes.data(), first.bytes);
      first.operation->result(first.destination + run * first.destination_stride, bytes.data(), first.bytes);
    }
    const uint64_t count = first.bytes * first.runs;
    const uint64_t cycles = fixed_cycles + first.runs * run_cycles + (count + bytes_per_cycle - 1) / bytes_per_cycle;
    busy += cycles;
    moved += count;
    machine.at(time + cycles, Order::END, [this](uint64_t end) { done(end); });
  }

  void done(uint64_t time)
  {
    machine.done(queue.front().operation, time);
    queue.pop_front();
    finished++;
    if (!queue.empty()) machine.at(time, Order::BEGIN, [this](uint64_t next) { begin(next); });
  }

  const uint64_t bytes_per_cycle, fixed_cycles, run_cycles, most;
  const std::vector<Span> written;
  uint32_t registers[6] = {0, 0, 0, 1, 0, 0};
  std::deque<Transfer> queue;
  uint64_t accepted = 0, finished = 0, busy = 0, moved = 0;
};

static dma_t *parse(const void *, const sim_t *sim, reg_t *base, const std::vector<std::string> &texts)
{
  Machine::get().attach(sim);
  Given given("dma", texts);
  *base = given.base();
  return new dma_t(given);
}
static std::string generate(const sim_t *, const std::vector<std::string> &) { return ""; }
REGISTER_DEVICE(dma, parse, generate)
