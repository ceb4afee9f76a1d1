"""The type of NumPy arrays with any element type, for annotations.

Importing it does not import NumPy.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    Array = Any
