"""Firmline as pip installs it: `installed/` has the folders of the repository. In a clone this lies in one of them.

Importing this makes their modules (`pipeline`, `stages`) known to this process, and to no other.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
FOLDER = _HERE / "installed" if (_HERE / "installed").is_dir() else _HERE.parents[2]

if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))
