"""The machine that builds: run-time code, and running programs natively."""
