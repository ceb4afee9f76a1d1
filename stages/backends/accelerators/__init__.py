"""Engines beside the core that compute whole layers, called through a C library: one folder for each."""
