"""Training on a GPU with PyTorch and the kernels of `rbfdiffnet.batch.triton`: extra ``[gpu]``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from queue import SimpleQueue
from typing import Any

from rbfdiffnet.batch.backend import Backend, Products

_SHARE_OF_MEMORY = 0.6
_MOST_SERIES = 16_384  # larger batches are no faster
_LANES = 3  # one copies or waits for the processor while others compute


class TorchBackend(Backend):
    """Operations on PyTorch tensors of a device: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``."""

    def __init__(self, device: str) -> None:
        import torch

        super().__init__(torch)
        self.device, self.lanes = device, 1 if device == "cpu" else _LANES

    def to_device(self, values: Any) -> Any:
        """Bring a NumPy array to the device."""
        return self.xp.from_numpy(values).to(self.device)

    @contextmanager
    def lane(self) -> Iterator[None]:
        """A context in which the work of one thread does not wait for that of others."""
        if self.lanes == 1:
            yield
            return
        streams = _streams(self.device)
        stream = streams.get()
        try:
            with self.xp.cuda.device(self.device), self.xp.cuda.stream(stream):
                yield
        finally:
            streams.put(stream)

    def batch_size(self, length: int, n_lags: int, n_centers: int) -> int:
        """How many series fit into a lane's share of the free memory of the device."""
        free = 2.0**32
        if self.device != "cpu":
            cuda = self.xp.cuda
            cached = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
            free = cuda.mem_get_info(self.device)[0] + cached
        share = _SHARE_OF_MEMORY * free / self.lanes
        columns = self.columns(n_lags, n_centers)
        return int(min(max(share / (8.0 * columns * length), 1), _MOST_SERIES))

    def columns(self, n_lags: int, n_centers: int) -> int:
        """How many arrays as long as the series there are at a time, at most."""
        return 6 * n_centers + 12 * n_lags + 30


class FusedBackend(TorchBackend):
    """The same on a card with the kernels of `rbfdiffnet.batch.triton`, where sizes allow."""

    def __init__(self, device: str) -> None:
        from rbfdiffnet.batch import triton

        super().__init__(device)
        self.kernels = triton

    def columns(self, n_lags: int, n_centers: int) -> int:
        """How many arrays as long as the series there are at a time, at most."""
        if self.kernels.fits(n_centers, n_lags):
            return 3 * n_lags + 50
        return super().columns(n_lags, n_centers)

    def root(self, A: Any, lift: Any = None) -> Any:
        """L^-1, where L is the Cholesky factor of A, or of A + diag(lift)."""
        if A.shape[1] > self.kernels.LARGEST:
            return super().root(A, lift)
        return self.kernels.root(A if lift is None else A + self.diagonal(lift))

    def solve(self, A: Any, b: Any) -> Any:
        """Solutions of A x = b."""
        fits = A.shape[1] < self.kernels.LARGEST
        return self.kernels.solve(A, b) if fits else super().solve(A, b)

    def neighbors(self, series: Any, season_length: int, before: int, later: int) -> Any:
        """Median of the values so many seasons before and after."""
        return self.kernels.neighbors(series, season_length, before, later)

    def rows(self, X: Any, weight: Any, n: Any) -> tuple[Any, Any, Any]:
        """Standardized inputs with the rows' weight, their means and spreads."""
        return self.kernels.rows(X, weight, n)

    def assign(self, rows: Any, centers: Any) -> tuple[Any, Any]:
        """Give each row to its nearest center: one pass of Lloyd's algorithm."""
        fits = max(centers.shape[1], rows.shape[1] + 1) <= self.kernels.LARGEST
        return self.kernels.assign(rows, centers) if fits else super().assign(rows, centers)

    def products(self, rows: Any, y: Any, centers: Any, beta: Any, slope: Any) -> Products:
        """The sums over rows that training needs."""
        if self.kernels.fits(*centers.shape[1:]):
            return _FusedProducts(self, rows, y, centers, beta, slope)
        return super().products(rows, y, centers, beta, slope)


class _FusedProducts(Products):
    """Products of columns that are never in memory."""

    def __init__(
        self, backend: FusedBackend, rows: Any, y: Any, centers: Any, beta: Any, slope: Any
    ) -> None:
        self.backend: FusedBackend = backend
        self.rows, self.y = rows, y
        self.square = (rows[:, :-1] ** 2).sum(axis=1)
        self.centers, self.beta, self.slope = centers, beta, slope

    def gram(self, a: Any) -> Any:
        """Products of G(a) with itself, the rows and the target."""
        return self.backend.kernels.gram(*self._arrays(a))

    def curvature(self, a: Any, b: Any) -> tuple[Any, Any, Any]:
        """What the Hessian of the objective is made of."""
        parts: tuple[Any, Any, Any] = self.backend.kernels.curvature(*self._arrays(a), b)
        return parts

    def _arrays(self, a: Any) -> tuple[Any, ...]:
        names = ("rows", "centers", "y", "square", "beta", "slope")
        return *(getattr(self, name) for name in names), self.constant(a), a


@cache
def _streams(device: str) -> SimpleQueue[Any]:
    """Streams of a device, one for each lane; each has a share of the memory to itself."""
    import torch

    streams: SimpleQueue[Any] = SimpleQueue()
    for _ in range(_LANES):
        streams.put(torch.cuda.Stream(device))
    return streams


def card_backend(device: str) -> Backend:
    """Return the operations for a card; see `rbfdiffnet.batch.backend.backend_for`."""
    if not re.fullmatch(r"cuda(:\d+)?", device):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'cuda:N'; got {device!r}.")
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs PyTorch with CUDA: pip install 'rbfdiffnet[gpu]'."
        ) from error
    if not torch.cuda.is_available():
        build = f"PyTorch {torch.__version__}"
        what = "is built without CUDA" if torch.version.cuda is None else "finds no NVIDIA card"
        raise RuntimeError(
            f"device={device!r}, but {build} {what}. Install a CUDA build and a driver, or use "
            "device='cpu'."
        )
    number = torch.device(device).index or 0
    if number >= torch.cuda.device_count():
        raise RuntimeError(
            f"device={device!r}, but there are only {torch.cuda.device_count()} cards."
        )
    fuse = _can_fuse(torch.cuda.get_device_capability(device))
    return (FusedBackend if fuse else TorchBackend)(device)


def _can_fuse(capability: tuple[int, int]) -> bool:
    """Whether both Triton and the card have products of float64."""
    try:
        parts = version("triton").split(".")
    except PackageNotFoundError:
        return False
    return (int(parts[0]), int(parts[1])) >= (3, 5) and capability >= (8, 0)
