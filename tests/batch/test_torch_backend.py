"""Training with PyTorch, and kernels against plain PyTorch, on a card or in the interpreter."""

import os
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec

import numpy as np
import pytest

from rbfdiffnet.batch import torch_backend as gpu
from rbfdiffnet.batch.backend import Backend, backend_for
from rbfdiffnet.batch.torch_backend import FusedBackend, TorchBackend
from rbfdiffnet.batch.train import fit_batch
from rbfdiffnet.models.networks.fast import fit_fast

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
CARD = torch.cuda.is_available()
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

kernels = pytest.mark.skipif(
    find_spec("triton") is None or not (CARD or INTERPRETED),
    reason="Triton needs a card, or its interpreter: another test starts that",
)
# Inputs, centers and rows of networks: tiles of 16, 32 and 64, some of them full.
SIZES = [(2, 5, 70), (14, 28, 150), (28, 30, 97), (14, 40, 97)]


def random(*shape, seed=0):
    values = torch.from_numpy(np.random.default_rng(seed).normal(size=shape))
    return values.cuda() if CARD else values


def fused():
    return FusedBackend("cuda" if CARD else "cpu")


def plain():
    return Backend(torch)


def same(found, expected, tolerance=1e-11):
    for one, other in zip(found, expected, strict=True):
        scale = float(other.abs().max())
        torch.testing.assert_close(one, other, rtol=0.0, atol=tolerance * scale)


def network(d, c, n):
    """Rows with some padding, target, centers, beta and slope of three networks."""
    weight = torch.ones_like(random(3, 1, n))
    weight[1, :, :9] = 0.0
    rows = torch.cat([random(3, d, n) * weight, weight], dim=1)
    y = random(3, n, seed=1) * weight[:, 0]
    centers = rows[:, :-1, -c:].swapaxes(1, 2) + 0.1 * random(3, c, d, seed=2)
    beta = 0.01 + 0.1 * random(3, c, seed=3).abs()
    return rows, y, centers, beta, -1.3 * beta


@pytest.mark.slow
@pytest.mark.skipif(CARD or INTERPRETED, reason="the kernels are tested in this run")
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_kernels_in_the_interpreter():
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, __file__],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "passed" in run.stdout


@kernels
@pytest.mark.parametrize("p", [3, 16, 27, 33, 43, 64])
def test_roots(p):
    A = random(4, p, 90)
    A = A @ A.swapaxes(1, 2)
    A[1, 0, 0] = -1.0
    A[2, -1, -1] = 0.0
    found = fused().root(A[:, :p, :p])
    same(found[[0, 3]], plain().root(A)[[0, 3]])
    assert torch.isnan(found[1:3]).all()


@kernels
@pytest.mark.parametrize("p", [2, 14, 15, 31, 40])
def test_solutions_of_equations(p):
    A, b = random(4, p, p + 1), random(4, p, seed=1)
    A[0, 0, 0] = 0.0  # needs an exchange of rows
    A[1] = torch.nan
    found = fused().solve(A[:, :, :p], b)
    same(found[[0, 2, 3]], plain().solve(A[:, :, :p], b)[[0, 2, 3]], 1e-9)
    assert torch.isnan(found[1]).all()


@kernels
def test_standardized_rows():
    X, weight = random(3, 5, 1100), torch.ones_like(random(3, 1100))
    X[0, 2], weight[1, :40] = 7.0, 0.0
    windows = X.swapaxes(1, 2).contiguous().swapaxes(1, 2)
    same(fused().rows(windows, weight, weight.sum(1)), plain().rows(X, weight, weight.sum(1)))


@kernels
@pytest.mark.parametrize("size", [*SIZES, (40, 60, 97)])
def test_a_step_of_lloyds_algorithm(size):
    rows, _, centers, _, _ = network(*size)
    centers[:, 1] = centers[:, 0]  # equally near
    same(fused().assign(rows, centers), plain().assign(rows, centers))


@kernels
@pytest.mark.parametrize("size", SIZES)
def test_products(size):
    arrays = network(*size)
    a, b = random(3, size[0] + 1, seed=4), random(3, sum(size[:2]) + 1, seed=5)
    found, expected = (backend.products(*arrays) for backend in (fused(), plain()))
    assert type(found) is not type(expected)
    for _ in range(2):
        same([found.gram(a)], [expected.gram(a)])
        same(found.curvature(a, b), expected.curvature(a, b))
        which = torch.tensor([1, 0]).to(a.device)
        found, expected, a, b = found.part(which), expected.part(which), a[which], b[which]


@kernels
def test_large_networks_are_left_to_pytorch():
    rows, y, centers, beta, slope = network(3, 70, 90)
    products = fused().products(rows, y, centers, beta, slope)
    assert type(products) is type(plain().products(rows, y, centers, beta, slope))
    same(fused().assign(rows, centers), plain().assign(rows, centers), 0.0)
    A = random(2, 70, 90)
    A = A @ A.swapaxes(1, 2)
    same([fused().root(A)], [plain().root(A)], 0.0)
    same([fused().solve(A, A[:, 0])], [plain().solve(A, A[:, 0])], 0.0)


@kernels
def test_networks_trained_with_kernels_are_the_same():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(3, 4, 120)), np.ones((3, 120))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=(3, 120))
    weight[1, :20] = 0.0
    backend = fused()
    tensors = [backend.to_device(values) for values in (X, y, weight)]
    found = fit_batch(*tensors, n_centers=7, n_steps=5, backend=backend).to_numpy()
    expected = fit_batch(X, y, weight, n_centers=7, n_steps=5)
    for field in fields(found):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)


@kernels
def test_forecasts_with_kernels_are_the_same():
    rng = np.random.default_rng(0)
    series = 20.0 + np.tile(rng.normal(size=(2, 7)), 25) + rng.normal(size=(2, 175))
    options = {"season_length": 7, "n_lags": 14, "n_centers": 8}
    backend = fused()
    with backend.lane():
        found = fit_fast(series, backend=backend, **options).forecast(9)
    np.testing.assert_allclose(found, fit_fast(series, **options).forecast(9), rtol=1e-7)


def test_pytorch_on_the_processor_gives_the_same():
    rng = np.random.default_rng(0)
    series = 20.0 + np.tile(rng.normal(size=(2, 7)), 60) + rng.normal(size=(2, 420))
    backend = TorchBackend("cpu")
    with backend.lane():
        found = fit_fast(series, season_length=7, n_lags=14, backend=backend).forecast(9)
    expected = fit_fast(series, season_length=7, n_lags=14).forecast(9)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert backend.batch_size(2_000, 14, 28) > 100


@pytest.mark.parametrize(
    ("version", "capability", "expected"),
    [("3.6.0", (9, 0), True), ("3.4.0", (9, 0), False), ("3.10.1", (7, 5), False)],
)
def test_kernels_need_products_of_float64(version, capability, expected, monkeypatch):
    monkeypatch.setattr(gpu, "version", lambda _: version)
    assert gpu._can_fuse(capability) is expected


@pytest.mark.skipif(CARD, reason="there is a card")
def test_what_is_missing_is_said():
    assert backend_for("cpu").xp is np
    with pytest.raises(RuntimeError, match=r"PyTorch .* use\s+device='cpu'"):
        backend_for("cuda")


@pytest.mark.skipif(not CARD, reason="no card")
def test_a_card_is_found():
    assert isinstance(backend_for("cuda"), TorchBackend)
    with pytest.raises(RuntimeError, match="only"):
        backend_for("cuda:99")
