"""The commands of `doit`: entry point, command choice, one module or package per command."""
