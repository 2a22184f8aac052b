"""Properties that search: many times the examples of the profile in force, which `tests/conftest.py` names."""

from hypothesis import settings


def examples(times: int) -> settings:
    """Try a property on so many times the usual number of examples."""
    return settings(max_examples=settings.default.max_examples * times)
