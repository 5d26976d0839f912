"""Factors and solutions of many small systems on NVIDIA cards, in Triton.

One program does one matrix, in registers. Nothing waits for the card, as PyTorch's own functions do
to see whether they failed.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

try:
    import triton
    import triton.language as tl

    jit = triton.jit
except ImportError:  # only imported, by what looks for examples

    def jit(function: Any) -> Any:
        """Leave functions as they are."""
        return function

    tl = None

__all__ = ["LARGEST", "jit", "launch", "power", "root", "solve", "tl"]

LARGEST = 64  # rows of a matrix
_HALF = 32


def root(A: Any) -> Any:
    """L^-1 of the Cholesky factors of matrices (B, p, p), p <= 64; NaN where there is none."""
    out, p = A.new_empty(A.shape), A.shape[1]
    where = A, out, *A.stride(), p
    if p <= _HALF:
        launch(_root, (len(A),), *where, P=power(p), num_warps=1)
    else:
        launch(_root_in_two, (len(A),), *where, P=power(p - _HALF), H=_HALF, num_warps=1)
    return out


def solve(A: Any, b: Any) -> Any:
    """Solutions of A x = b, (B, p, p) and (B, p), p < 64."""
    out, p = b.new_empty(b.shape), A.shape[1]
    P = power(p + 1)
    strides, warps = (*A.stride(), *b.stride()), 1 if P <= _HALF else 4
    launch(_solve, (len(A),), A, b, out, *strides, p, P=P, num_warps=warps)
    return out


def launch(kernel: Any, grid: tuple[int, ...], *inputs: Any, **options: Any) -> None:
    """Run the programs of a grid where the first input is."""
    import torch

    with torch.cuda.device_of(inputs[0]):
        kernel[grid](*inputs, **options)


def power(n: int) -> int:
    """Smallest power of two that is not less than n, nor than 16."""
    return max(16, 1 << (n - 1).bit_length())


@jit
def _factor(tile, p, P: tl.constexpr):
    """L^-1 of a symmetric tile with p rows, NaN where there is none.

    It takes the tile's place row by row. Below the rows done are, on the left, what they add to
    the next ones, and on the right what is left of the tile:

        row j /= l,  row i -= l_i row j  for i > j,  where l = L_jj and l_i = L_ij.
    """
    i = tl.arange(0, P)
    pivot = tl.full([], 1.0, tl.float64)
    for j in range(p):
        row = tl.sum(tl.where(i[:, None] == j, tile, 0.0), axis=0)
        pivot = tl.sum(tl.where(i == j, row, 0.0), axis=0)
        scale = 1.0 / tl.sqrt(pivot)
        below = tl.where(i > j, row * scale, 0.0)  # by symmetry
        row = tl.where(i == j, scale, row * scale)
        tile = tl.where(i[None, :] == j, 0.0, tile) - below[:, None] * row[None, :]
        tile = tl.where(i[:, None] == j, row[None, :], tile)
    tile = tl.where(i[:, None] >= i[None, :], tile, 0.0)
    return tl.where(pivot > 0.0, tile, float("nan"))  # a bad pivot spoils those after it


@jit
def _root(A, out, sb, si, sj, p, P: tl.constexpr):
    """L^-1."""
    series = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, P)[:, None], tl.arange(0, P)[None, :]
    inside = (i < p) & (j < p)
    tile = tl.load(A + series * sb + i * si + j * sj, mask=inside, other=0.0)
    tl.store(out + (series * p + i) * p + j, _factor(tile, p, P), mask=inside)


@jit
def _root_in_two(A, out, sb, si, sj, p, P: tl.constexpr, H: tl.constexpr):
    """L^-1 from the factors of the first H rows and of what they leave of the others.

    M = L11^-1,  L21 = A21 M',  N = L22^-1 of A22 - L21 L21',  L^-1 = [M, 0; -N L21 M, N].
    """
    series = tl.program_id(0).to(tl.int64)
    A += series * sb
    out += series * p * p
    h, g = tl.arange(0, H)[:, None], tl.arange(0, H)[None, :]
    i, j = H + tl.arange(0, P)[:, None], H + tl.arange(0, P)[None, :]
    inside = (i < p) & (j < p)
    M = _factor(tl.load(A + h * si + g * sj), H, H)
    L21 = tl.load(A + i * si + g * sj, mask=i < p, other=0.0)
    L21 = tl.dot(L21, tl.trans(M), out_dtype=tl.float64)
    rest = tl.load(A + i * si + j * sj, mask=inside, other=0.0)
    rest -= tl.dot(L21, tl.trans(L21), out_dtype=tl.float64)
    N = _factor(rest, p - H, P)
    corner = -tl.dot(N, tl.dot(L21, M, out_dtype=tl.float64), out_dtype=tl.float64)
    good = tl.sum(tl.sum(N, axis=1), axis=0)
    M = tl.where(good == good, M, float("nan"))
    tl.store(out + h * p + g, M)
    tl.store(out + h * p + j, tl.zeros([H, P], tl.float64) * good, mask=j < p)
    tl.store(out + i * p + g, corner, mask=i < p)
    tl.store(out + i * p + j, N, mask=inside)


@jit
def _solve(A, b, out, sb, si, sj, tb, ti, p, P: tl.constexpr):
    """Gauss-Jordan elimination of [A, b] with partial pivoting."""
    series = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, P)
    inside = (i[:, None] < p) & (i[None, :] < p)
    tile = tl.load(A + series * sb + i[:, None] * si + i[None, :] * sj, mask=inside, other=0.0)
    right = tl.load(b + series * tb + i * ti, mask=i < p, other=0.0)
    tile = tl.where(i[None, :] == p, right[:, None], tile)
    for j in range(p):
        column = tl.sum(tl.where(i[None, :] == j, tile, 0.0), axis=1)
        best = tl.argmax(tl.where((i >= j) & (i < p), tl.abs(column), -1.0), axis=0)
        row = tl.sum(tl.where(i[:, None] == best, tile, 0.0), axis=0)
        other = tl.sum(tl.where(i[:, None] == j, tile, 0.0), axis=0)
        tile = tl.where(i[:, None] == best, other[None, :], tile)  # exchanged
        column = tl.where(i == best, tl.sum(tl.where(i == j, column, 0.0), axis=0), column)
        row = row / tl.sum(tl.where(i == j, row, 0.0), axis=0)
        tile = tl.where(i[:, None] == j, row[None, :], tile - column[:, None] * row[None, :])
    solution = tl.sum(tl.where(i[None, :] == p, tile, 0.0), axis=1)
    tl.store(out + series * p + i, solution, mask=i < p)
