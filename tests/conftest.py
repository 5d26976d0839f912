import os

import pytest
from hypothesis import settings

# One thread for each process, since pytest-xdist starts one for each core. Its processes inherit
# these limits from the first one: their plugins may load NumPy before they come here.
if "OMP_NUM_THREADS" not in os.environ:
    for limit in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM"):
        os.environ.setdefault(f"{limit}_THREADS", "1")

import numpy as np  # reads the limits of threads
from sklearn.datasets import make_friedman1

# The same cases on every run, and no deadline: a busy machine is no failure. A property gets few
# examples here; `--hypothesis-profile thorough` and tests/fuzzing/run.py try many more.
settings.register_profile("seeded", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("seeded")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of one file stay on one process where possible, and so share what they fitted."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture
def friedman():
    X, y = make_friedman1(300, n_features=6, noise=0.5, random_state=0)
    return X, y


@pytest.fixture
def limits_of_threads(monkeypatch):
    """Limits that a benchmark sets in the environment are gone afterwards."""
    for limit in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM"):
        monkeypatch.setenv(f"{limit}_THREADS", "1")


@pytest.fixture(scope="module")
def remembered_trajectories():
    """Learning takes a while, and the same series comes up in several tests."""
    from rbfdiffnet.noise import learn_trajectory

    known = {}

    def learn(s, n_lags, noise=None, shape=None):
        key = s.tobytes(), n_lags, noise, shape
        if key not in known:
            known[key] = learn_trajectory(s, n_lags, noise, shape)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rbfdiffnet.models.networks.series_model.learn_trajectory", learn)
        yield


@pytest.fixture
def write(tmp_path):
    """Write lines to a file, and return its path."""

    def write_text(*lines, encoding="utf-8", name="sales.csv"):
        path = tmp_path / name
        path.write_bytes(("\n".join(lines) + "\n").encode(encoding))
        return str(path)

    return write_text
