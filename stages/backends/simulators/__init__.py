"""What all simulators share: starting a program, its limits, cycle counters, source places of addresses."""
