"""`python -m pipeline` is `doit` in this project; bootstrap makes `.venv/bin/doit` say so."""

from __future__ import annotations

if __name__ == "__main__":
    from pipeline.commands.entry import main

    main()
