import numpy as np
import pytest
from hypothesis import settings

# The same cases on every run, and no deadline: a busy machine is no failure.
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def pytest_collection_modifyitems(items):
    """Run fast tests first."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
