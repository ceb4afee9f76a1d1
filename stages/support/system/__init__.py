"""The machine that Firmline runs on: files, folders, programs, limits, and what was loaded from where."""
