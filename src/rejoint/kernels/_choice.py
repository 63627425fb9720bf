"""Whether kernels run compiled or in NumPy."""

import os
from importlib import import_module
from typing import Any


def _load() -> Any:
    if os.environ.get("REJOINT_KERNELS", "").lower() == "numpy":
        return None
    try:
        return import_module("rejoint.kernels._native")
    except ImportError:  # a wheel built without a compiler
        return None


compiled = _load()

#: "native" if the compiled kernels run, "numpy" if their twins do.
backend: str = "numpy" if compiled is None else "native"
