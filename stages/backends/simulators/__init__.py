"""Simulators that run a program: `spike` (with the P-extension plug-in), `qemu` (Arm) and `native` (this machine)."""
