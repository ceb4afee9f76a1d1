"""The C compiler, linker and binary tools of a target."""
