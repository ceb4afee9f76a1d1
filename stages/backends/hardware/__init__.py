"""Run a firmware on a board through a GDB server: OpenOCD, pyOCD, J-Link, probe-rs, QEMU."""
