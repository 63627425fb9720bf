"""Fixtures that the tests of estimation share."""

import pytest


@pytest.fixture
def press_at(monkeypatch):
    """Press Ctrl-C at the k-th call of a function of a module or class; returns the calls made."""

    def patch(owner, name, k):
        real, calls = getattr(owner, name), []

        def pressed(*args, **kwargs):
            calls.append(args)
            if len(calls) == k:
                raise KeyboardInterrupt
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, pressed)
        return calls

    return patch
