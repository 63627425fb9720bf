"""Names for the types of arrays that the package passes around."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Single = NDArray[np.float32]

#: A number for each record that is the same within a cluster.
Keys = NDArray[np.int64]

#: Positions of levels, -1 where a value is missing.
Codes = NDArray[np.signedinteger[Any]]
