"""Firmline as an installed package: `installed/` has the repository's folders.

In a clone, this package lies in one of these folders. Importing it adds the modules (`pipeline`, `stages`) to the path
of this process.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
FOLDER = _HERE / "installed" if (_HERE / "installed").is_dir() else _HERE.parents[2]

if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))
