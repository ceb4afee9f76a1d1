"""What a project's dodo.py imports: plain `doit` reads that, and Firmline's command line runs instead."""

from __future__ import annotations

from firmline.__main__ import main

main()
