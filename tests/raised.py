"""The error that a call must raise, as a value to look at."""

import pytest


def raised(kind, match, work, *args, **named):
    """The error of that kind, whose words match, which `work(*args, **named)` raises; "" matches any."""
    with pytest.raises(kind, match=match or None) as caught:
        work(*args, **named)
    return caught.value
