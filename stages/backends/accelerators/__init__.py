"""Engines beside the core that compute whole layers. Each has a folder and a C library."""
