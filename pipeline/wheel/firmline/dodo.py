"""Imported by a project's dodo.py: plain `doit` then starts Firmline's command line."""

from __future__ import annotations

from firmline.__main__ import main

main()
