import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def pytest_collection_modifyitems(items):
    """Run fast tests first."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
