"""QEMU for Arm: whole Cortex-M machines and AArch64 in user mode, and the plug-in that counts instructions."""
