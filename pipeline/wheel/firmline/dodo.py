"""Imported by a project's dodo.py: plain `doit` then starts Firmline's command line."""

from firmline.__main__ import main

main()
