"""The process of a command: signals, standard streams, and how it ends."""
