"""Export of the emitted sources into other build systems (`doit export`), by form."""
