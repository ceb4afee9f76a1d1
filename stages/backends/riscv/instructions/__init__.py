"""Instruction sets as data: encodings, meaning, and the files generated from them.

`<name>-<version>.yaml` declares one version of an extension. From it come the simulator's plug-in (spike_plugin.py),
the headers of the kernels (kernel_headers.py) and a Python model for tests (model.py). README.md explains the fields.
"""
