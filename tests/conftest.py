import os

import pytest
from hypothesis import settings

# Timings vary too much on shared machines for a deadline per example to mean anything.
settings.register_profile("rejoint", deadline=None)
settings.load_profile("rejoint")

# Figures are drawn to files only; must be said before matplotlib is first imported.
os.environ.setdefault("MPLBACKEND", "Agg")

#: Tests that press Ctrl-C, kill processes or start a cluster.
OF_PROCESSES = {
    "test_checkpoint",
    "test_distributed",
    "test_endings",
    "test_fit_stream",
    "test_interrupt",
    "test_kernels_threads",
    "test_paper_framework",
}


def pytest_collection_modifyitems(config, items):
    """What needs a browser or other processes may fail once.

    They talk over pipes and by signals, and on a machine without a free core they lose frames,
    connections and the moment that a test waits for. A fault of ours fails twice.
    """
    if not config.pluginmanager.hasplugin("rerunfailures"):
        return
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()) or item.path.stem in OF_PROCESSES:
            item.add_marker(pytest.mark.flaky(reruns=1))
