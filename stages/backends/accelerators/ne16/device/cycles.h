// Cycles of a job in closed form: the same as stages/backends/accelerators/ne16/cycles.py, which names the sources.
#pragma once

#include "task.h"

namespace ne16 {

uint64_t cycles(const Task &task);

}  // namespace ne16
