"""Targets: the declaration (`spec`) and one folder per family with start-up code, linker template and host I/O."""
