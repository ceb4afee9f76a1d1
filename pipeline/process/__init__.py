"""The process of a command: signals, standard streams, interruption."""
