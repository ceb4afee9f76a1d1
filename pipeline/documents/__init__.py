"""YAML as people write it: read with positions, overridden from the command line, blamed by line."""
