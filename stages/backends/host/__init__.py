"""The machine that builds: run-time code, and the programs run as they are."""
