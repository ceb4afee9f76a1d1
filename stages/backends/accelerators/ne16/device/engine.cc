// NE16's registers, as the RTL has them: two job contexts, one running and one queued. From 0x1000 before its base on:
//
//   0x0018  cluster control: bit 11 clock, bit 8 priority, bits 7:0 stall; reads back
//   0x1000  TRIGGER       write: commits the acquired context; 0 starts it as well
//   0x1004  ACQUIRE       read: a job number 0 to 255; -1: both contexts have a job, -2: acquired and not committed
//   0x1008  FINISHED      jobs since the last access, at most 2
//   0x100c  STATUS        bit 0: context 0 has a job, bit 8: context 1
//   0x1010  RUNNING_JOB   jobs finished, modulo 256: the number of the running job, or of the next
//   0x1014  SOFT_CLEAR    write: resets; 0 clears the task words too
//   0x1020  24 task words of the acquired context
//   0x1200  counters, 64 bits each, which silicon lacks: cycles in use, multiply-accumulates, bytes read, bytes written,
//           jobs, outputs that wrapped, triggers and task words without ACQUIRE, cycles that the core waited
#include <deque>

#include "cycles.h"
#include "job.h"
#include "registers.h"

using namespace firmline;
using namespace ne16;

class ne16_t : public Registers {
 public:
  explicit ne16_t(const Given &given) : Registers("ne16"), extension(given.text("extension"))
  {
    given.only({"l1", "extension"});
    const Span region = given.regions("l1").front();
    l1.base = region.from;
    l1.bytes = region.to - region.from;
    if (!extension.empty() && extension != "tflite" && extension != "none")
      machine.fault("ne16: there is no extension " + extension + ", only tflite");
  }

  reg_t size() override { return 0x2000; }

 protected:
  bool read(uint32_t offset, uint32_t &value) override
  {
    value = 0;
    if (offset == CLUSTER) return value = cluster, true;
    if (offset < ENGINE) return false;
    switch (const uint32_t at = offset - ENGINE) {
      case ACQUIRE: value = acquire(); break;
      case FINISHED: value = finished_since; finished_since = 0; break;
      case STATUS: value = status(); polled(finished_all, queue.empty()); break;
      case RUNNING_JOB: value = uint8_t(finished); polled(finished_all, queue.empty()); break;
      case TRIGGER: case SOFT_CLEAR: case SWSYNC: break;
      default:
        if (at >= TASK && at < TASK + 4 * WORDS) return value = contexts[context][(at - TASK) / 4], true;
        return counter({busy, counts.macs, counts.read, counts.written, finished_all, counts.wrapped, unacquired, waited},
                       at, COUNTERS, value);
    }
    return true;
  }

  bool write(uint32_t offset, uint32_t value) override
  {
    if (offset == CLUSTER) return cluster = value, true;
    if (offset < ENGINE) return false;
    switch (const uint32_t at = offset - ENGINE) {
      case TRIGGER: trigger(value); break;
      case FINISHED: finished_since = 0; break;
      case SOFT_CLEAR: clear(value == 0); break;
      case ACQUIRE: case STATUS: case RUNNING_JOB: case SWSYNC: break;
      default:
        if (at < TASK || at >= TASK + 4 * WORDS) return false;
        if (!acquired && !warned) without_acquire("task words"), warned = true;
        contexts[context][(at - TASK) / 4] = value;
    }
    return true;
  }

 private:
  enum : uint32_t { CLUSTER = 0x18, ENGINE = 0x1000, TASK = 0x20, COUNTERS = 0x200 };
  enum : uint32_t {
    TRIGGER = 0x00, ACQUIRE = 0x04, FINISHED = 0x08, STATUS = 0x0c, RUNNING_JOB = 0x10, SOFT_CLEAR = 0x14, SWSYNC = 0x18
  };
  static constexpr uint32_t CLOCK = 1 << 11, EXTENDED_BITS = 0xfu << 26;

  struct Queued {
    int context;
    bool started;
    Task task;
    Running operation;
  };

  uint32_t acquire()
  {
    const bool full = queue.size() == 2;
    polled(finished_all, !full);
    if (acquired) return -2;
    if (full) return -1;
    acquired = true;
    warned = false;
    return next_id++;
  }

  uint32_t status() const
  {
    uint32_t found = 0;
    for (const Queued &one : queue)
      if (one.started) found |= one.context ? 0x100 : 0x001;
    return found;
  }

  void without_acquire(const std::string &what)
  {
    unacquired++;
    machine.warn(unit, machine.layer, 1, what + " without ACQUIRE");
  }

  void trigger(uint32_t value)
  {
    if (!(cluster & CLOCK)) machine.fault("ne16 TRIGGER: the clock is off (bit 11 of the cluster control at 0x18)");
    if (queue.size() == 2) machine.fault("ne16 TRIGGER: both contexts have a job");
    if (!acquired && !warned) without_acquire("triggers");
    acquired = warned = false;
    queue.push_back(committed());
    context ^= 1;
    if (value == 0)
      for (Queued &one : queue) one.started = true;
    if (queue.size() == 1 && value == 0) start_at(machine.now());
  }

  // The acquired context as a job, with a copy of its words.
  Queued committed()
  {
    const char *why = nullptr;
    Queued found{context, false, decoded(contexts[context], why), std::make_shared<Operation>()};
    found.operation->unit = unit;
    found.operation->name = "job " + std::to_string(jobs++);
    const uint32_t extended = found.task.word(CONF0) & EXTENDED_BITS;
    if (extended && extension != "tflite")
      machine.fault("ne16 conf0: bits " + hexadecimal(extended) + " belong to the extension tflite, which is not there");
    const std::string wrong = why ? why : Job(found.task).claim(l1, *found.operation);
    if (!wrong.empty()) machine.fault("ne16 " + wrong);
    machine.commit(found.operation);
    return found;
  }

  void start_at(uint64_t time)
  {
    machine.at(time + 1, Order::BEGIN, [this, era = era](uint64_t begin) { if (era == this->era) run(begin); });
  }

  void run(uint64_t time)
  {
    Queued &first = queue.front();
    machine.begin(first.operation, time);
    l1.content.resize(l1.bytes);
    machine.read(l1.base, l1.content.data(), l1.bytes);
    const uint64_t macs = counts.macs, wrapped = counts.wrapped;
    if (std::string wrong = Job(first.task).compute(l1, *first.operation, counts); !wrong.empty())
      machine.fault("ne16 " + wrong, first.operation->layer);
    first.operation->amount = counts.macs - macs;
    if (counts.wrapped > wrapped)
      machine.warn(unit, first.operation->layer, counts.wrapped - wrapped, "outputs whose sum or product wrapped");
    const uint64_t took = cycles(first.task);
    busy += took;
    machine.at(time + took, Order::END, [this, era = era](uint64_t end) { if (era == this->era) done(end); });
  }

  void done(uint64_t time)
  {
    machine.done(queue.front().operation, time);
    queue.pop_front();
    finished++;
    finished_all++;
    finished_since = std::min(finished_since + 1, 2u);
    if (!queue.empty() && queue.front().started) start_at(time);
  }

  // Its previous jobs never end.
  void clear(bool words)
  {
    for (const Queued &one : queue) machine.cancel(one.operation);
    queue.clear();
    era++;
    acquired = warned = false;
    context = 0;
    next_id = finished = 0;
    finished_since = 0;
    if (words) contexts = {};
  }

  const std::string extension;
  L1 l1;
  uint32_t cluster = 0;
  std::array<std::array<uint32_t, WORDS>, 2> contexts{};
  int context = 0;  // the context that task words are written to
  bool acquired = false, warned = false;
  uint8_t next_id = 0, finished = 0;
  uint32_t finished_since = 0;
  std::deque<Queued> queue;
  int era = 0;  // ignores events of jobs before SOFT_CLEAR
  uint64_t jobs = 0, busy = 0, finished_all = 0, unacquired = 0;
  Counts counts;
};

static ne16_t *parse(const void *, const sim_t *sim, reg_t *base, const std::vector<std::string> &texts)
{
  Machine::get().attach(sim);
  Given given("ne16", texts);
  *base = given.base() - 0x1000;
  return new ne16_t(given);
}
static std::string generate(const sim_t *, const std::vector<std::string> &) { return ""; }
REGISTER_DEVICE(ne16, parse, generate)
