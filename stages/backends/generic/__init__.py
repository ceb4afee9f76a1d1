"""Portable C kernels that every family can use."""
