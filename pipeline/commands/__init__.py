"""The commands of `doit` here: how a process starts, which command is meant, and each of them."""
