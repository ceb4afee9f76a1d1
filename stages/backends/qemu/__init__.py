"""QEMU for Arm, and the plug-in that counts instructions.

It simulates Cortex-M machines, and AArch64 programs in user mode.
"""
