"""What tests of estimates share."""

import pytest


@pytest.fixture
def press_at(monkeypatch):
    """Ctrl-C at the k-th call of a function of a module; returns the list of the calls made."""

    def patch(module, name, k):
        real, calls = getattr(module, name), []

        def pressed(*given):
            calls.append(given)
            if len(calls) == k:
                raise KeyboardInterrupt
            return real(*given)

        monkeypatch.setattr(module, name, pressed)
        return calls

    return patch
