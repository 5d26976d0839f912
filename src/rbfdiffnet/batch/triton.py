r"""Kernels for NVIDIA cards, in Triton, which comes with PyTorch on Linux.

One program does one series, or one small system of equations. It goes through the rows in blocks of
which nothing but inputs, weights and targets is read; Gaussians, G and J
(`rbfdiffnet.batch.backend.Products`) never leave the registers:

.. math::

    \varphi_j = \exp\big(\beta_j (2 \mu_j \cdot x - \mu_j^2 - x^2)\big), \qquad
    G_j = \varphi_j\,(s_j\, a \cdot x + k_j)

A block is a tile of the inputs, then the weight, then the target; tiles are padded with zeros to
powers of two. Nothing waits for the card, as PyTorch's own functions do to see whether they failed.
Importing this file takes about a second, so only `rbfdiffnet.batch.torch_backend` does, when it is
needed.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any

from rbfdiffnet.batch.backend import SMALLEST_SPREAD, TIE

try:
    import triton
    import triton.language as tl

    jit = triton.jit
except ImportError:  # only imported, by what looks for examples

    def jit(function: Any) -> Any:
        """Leave functions as they are."""
        return function

    tl = None

LARGEST = 64  # side of a tile, rows of a matrix
_HALF = 32
_LARGEST_TILE = 1024  # entries of a tile: of larger ones registers cannot hold all that are needed

# Rows of a block, warps of a program and stages of the loop. Few warps are best: they neither wait
# for each other nor do the same work twice.
_FEW = {"R": 32, "num_warps": 1, "num_stages": 1}
_MORE = {"R": 32, "num_warps": 2, "num_stages": 3}
_STANDARDIZE = {"R": 1024, "num_warps": 4, "SMALLEST": SMALLEST_SPREAD}


def fits(n_centers: int, n_inputs: int) -> bool:
    """Whether `gram` and `curvature` of networks of this size are quicker than PyTorch."""
    return power(n_centers) * power(n_inputs + 2) <= _LARGEST_TILE


def neighbors(series: Any, season_length: int, before: int, later: int) -> Any:
    """Medians of values around, as by `Backend.neighbors`."""
    batch, length = series.shape
    out, R = series.new_empty(batch, length), 512
    sizes = {"BEFORE": before, "LATER": later, "R": R}
    inputs = series.contiguous(), out, length, season_length
    launch(_neighbors, (batch, -(-length // R)), *inputs, **sizes)
    return out


def rows(X: Any, weight: Any, n: Any) -> tuple[Any, Any, Any]:
    """Standardized inputs with the rows' weight, as by `Backend.rows`."""
    batch, d, N = X.shape
    out, mean = X.new_empty(batch, d + 1, N), X.new_empty(batch, d)
    spread = X.new_empty(batch, d)
    arrays = X, weight.contiguous(), n, out, mean, spread
    launch(_standardize, (batch, d), *arrays, *X.stride(), N, d, **_STANDARDIZE)
    out[:, -1] = weight
    return out, mean, spread


def assign(rows: Any, centers: Any) -> tuple[Any, Any]:
    """One pass of Lloyd's algorithm, as by `Backend.assign`."""
    batch, c, d = centers.shape
    out = rows.new_empty(batch, c, d + 2)
    options = _FEW if fits(c, d) else _MORE
    _each(_assign, rows, centers, [out], TIE=TIE, **options)
    return out[:, :, :-1], out[:, :, -1]


def gram(rows: Any, centers: Any, *inputs: Any) -> Any:
    """Products of G(a) with itself, the rows and the target, (B, c, c + d + 2).

    `rows` has shape (B, d + 1, N) and `centers` (B, c, d). The other inputs are the target and the
    squares of the inputs, (B, N); beta, slope and constant, (B, c); and a.
    """
    batch, c, d = centers.shape
    out = rows.new_empty(batch, c, c + d + 2)
    _each(_gram, rows, centers, [*inputs, out], **_MORE)
    return out


def curvature(rows: Any, centers: Any, *inputs: Any) -> tuple[Any, Any, Any]:
    """What the Hessian is made of, as `Products.curvature` says; inputs as for `gram`, then b."""
    batch, c, d = centers.shape
    K = rows.new_empty(batch, c + d + 2, d + 1)
    JJ = rows.new_empty(batch, d + 1, d + 1)
    _each(_curvature, rows, centers, [*inputs, K, JJ], **_MORE)
    return K[:, :-1], K[:, -1], JJ


def _each(kernel: Any, rows: Any, centers: Any, tensors: list[Any], **options: Any) -> None:
    """Run a program for each series."""
    batch, c, d = centers.shape
    arrays = [values.contiguous() for values in (rows, centers, *tensors)]
    sizes = {"C": power(c), "D": power(d + 2)}
    launch(kernel, (batch,), *arrays, rows.shape[2], c, d, **sizes, **options)


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
def _standardize(
    X, weight, n, out, mean, spread, sb, sk, sn, N, d, R: tl.constexpr, SMALLEST: tl.constexpr
):
    """An input with mean 0 and spread 1, 0 where it does not count."""
    series, k = tl.program_id(0).to(tl.int64), tl.program_id(1)
    X += series * sb + k * sk
    weight += series * N
    count = tl.load(n + series)
    i = tl.arange(0, R)
    total = tl.zeros([R], tl.float64)
    for first in range(0, N, R):
        inside = first + i < N
        w = tl.load(weight + first + i, mask=inside, other=0.0)
        total += tl.load(X + (first + i) * sn, mask=inside, other=0.0) * w
    shift = tl.sum(total, axis=0) / count
    total = tl.zeros([R], tl.float64)
    for first in range(0, N, R):
        inside = first + i < N
        w = tl.load(weight + first + i, mask=inside, other=0.0)
        x = (tl.load(X + (first + i) * sn, mask=inside, other=0.0) - shift) * w
        total += x * x
    size = tl.sqrt(tl.sum(total, axis=0) / count)
    size = tl.where(size > SMALLEST, size, 1.0)
    out += (series * (d + 1) + k) * N
    for first in range(0, N, R):
        inside = first + i < N
        w = tl.load(weight + first + i, mask=inside, other=0.0)
        x = (tl.load(X + (first + i) * sn, mask=inside, other=0.0) - shift) * w
        tl.store(out + first + i, x / size, mask=inside)
    tl.store(mean + series * d + k, shift)
    tl.store(spread + series * d + k, size)


@jit
def _known(series, t, length):
    """Values at times t, infinite where there is none."""
    value = tl.load(series + t, mask=(t >= 0) & (t < length), other=float("inf"))
    return tl.where(tl.abs(value) < float("inf"), value, float("inf"))


@jit
def _neighbors(
    series, out, length, season, BEFORE: tl.constexpr, LATER: tl.constexpr, R: tl.constexpr
):
    """Medians of the values some seasons before and after: those of middle rank."""
    t = tl.program_id(1) * R + tl.arange(0, R)
    start = tl.program_id(0).to(tl.int64) * length
    series += start
    count = tl.zeros([R], tl.int32)
    for i in tl.static_range(-BEFORE, LATER + 1):
        if i != 0:
            known = _known(series, t + i * season, length) < float("inf")
            count += known.to(tl.int32)
    low = tl.zeros([R], tl.float64)
    high = tl.zeros([R], tl.float64)
    for i in tl.static_range(-BEFORE, LATER + 1):
        if i != 0:
            value = _known(series, t + i * season, length)
            rank = tl.zeros([R], tl.int32)
            for j in tl.static_range(-BEFORE, LATER + 1):
                if j != 0:
                    other = _known(series, t + j * season, length)
                    first = (other <= value) if j < i else (other < value)
                    rank += first.to(tl.int32)
            low += tl.where(rank == (count - 1) // 2, value, 0.0)
            high += tl.where(rank == count // 2, value, 0.0)
    middle = tl.where(count > 0, 0.5 * (low + high), float("nan"))
    tl.store(out + start + t, middle, mask=t < length)


@jit
def _tile(rows, series, n, N, d, D: tl.constexpr):
    """Inputs and weights of the rows n."""
    k = tl.arange(0, D)[None, :]
    inside = (k <= d) & (n < N)[:, None]
    return tl.load(rows + (series * (d + 1) + k) * N + n[:, None], mask=inside, other=0.0)


@jit
def _centers(centers, series, c, d, C: tl.constexpr, D: tl.constexpr):
    """The centers."""
    j, k = tl.arange(0, C)[:, None], tl.arange(0, D)[None, :]
    return tl.load(centers + (series * c + j) * d + k, mask=(j < c) & (k < d), other=0.0)


@jit
def _vector(values, series, size, first, last, P: tl.constexpr):
    """Values of a series from the first to before the last, then zeros."""
    i = first + tl.arange(0, P)
    return tl.load(values + series * size + i, mask=i < last, other=0.0)


@jit
def _assign(
    rows,
    centers,
    out,
    N,
    c,
    d,
    C: tl.constexpr,
    D: tl.constexpr,
    R: tl.constexpr,
    TIE: tl.constexpr,
):
    """Sums of the rows nearest to each center, their number, and the sum of their distances.

    Squared distances, less the rows' own squares, are -2 mu . x + mu^2.
    """
    series = tl.program_id(0).to(tl.int64)
    j, k = tl.arange(0, C)[:, None], tl.arange(0, D)[None, :]
    mu = _centers(centers, series, c, d, C, D)
    own = tl.where(j < c, tl.sum(mu * mu, axis=1)[:, None], 1e300)
    left = tl.trans(tl.where(k == d, own, -2.0 * mu))
    sums = tl.zeros([C, D], tl.float64)
    for first in range(0, N, R):
        n = first + tl.arange(0, R)
        tile = _tile(rows, series, n, N, d, D)
        weight = tl.load(rows + (series * (d + 1) + d) * N + n, mask=n < N, other=0.0)
        distance = tl.dot(tile, left, out_dtype=tl.float64)
        lowest = tl.min(distance, axis=1)
        square = tl.sum(tl.where(k < d, tile * tile, 0.0), axis=1)
        away = tl.sqrt(tl.maximum(lowest + square, 0.0)) * weight
        member = tl.where(distance <= lowest[:, None] + TIE, 1.0, 0.0).to(tl.float64)
        tile = tl.where(k == d + 1, away[:, None], tile)
        sums = tl.dot(tl.trans(member), tile, sums, out_dtype=tl.float64)
    tl.store(out + (series * c + j) * (d + 2) + k, sums, mask=(j < c) & (k < d + 2))


@jit
def _exponents(centers, beta, series, c, d, C: tl.constexpr, D: tl.constexpr):
    """What (x, 1, -x^2) is to be multiplied by: beta_j (2 mu_j, -mu_j^2, 1)."""
    k = tl.arange(0, D)[None, :]
    mu = _centers(centers, series, c, d, C, D)
    own = tl.sum(mu * mu, axis=1)[:, None]
    left = tl.where(k == d, -own, 2.0 * mu)
    left = tl.where(k == d + 1, 1.0, left)
    return tl.trans(left * _vector(beta, series, c, 0, c, C)[:, None])


@jit
def _gram(
    rows, centers, y, square, beta, slope, constant, a, out, N, c, d,
    C: tl.constexpr, D: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Products of G with itself, the rows and the target."""
    series = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, D)[None, :]
    left = _exponents(centers, beta, series, c, d, C, D)
    slopes = _vector(slope, series, c, 0, c, C)[:, None]
    linear = slopes * _vector(a, series, d + 1, 1, d + 1, D)[None, :]
    linear = tl.where(k == d, _vector(constant, series, c, 0, c, C)[:, None], linear)
    linear = tl.trans(linear)
    own = tl.zeros([C, C], tl.float64)
    others = tl.zeros([C, D], tl.float64)
    for first in range(0, N, R):
        n = first + tl.arange(0, R)
        tile = _tile(rows, series, n, N, d, D)
        target = _vector(y, series, N, first, N, R)[:, None]
        squares = _vector(square, series, N, first, N, R)[:, None]
        phi = tl.exp(tl.dot(tl.where(k == d + 1, -squares, tile), left, out_dtype=tl.float64))
        tile = tl.where(k == d + 1, target, tile)
        G = phi * tl.dot(tile, linear, out_dtype=tl.float64)
        own = tl.dot(tl.trans(G), G, own, out_dtype=tl.float64)
        others = tl.dot(tl.trans(G), tile, others, out_dtype=tl.float64)
    i, j = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :]
    out += (series * c + i) * (c + d + 2)
    tl.store(out + j, own, mask=(i < c) & (j < c))
    tl.store(out + c + k, others, mask=(i < c) & (k < d + 2))


@jit
def _curvature(
    rows, centers, y, square, beta, slope, constant, a, b, K, JJ, N, c, d,
    C: tl.constexpr, D: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """The parts of the Hessian.

        J_i = sum_j v_j phi_j (mu_ji - x_i),  J_0 = sum_j w_j phi_j,  v_j = -s_j w_j,
        K_ji = s_j sum phi_j (a.x J_i - r x_i) + k_j sum phi_j J_i + s_j mu_ji sum phi_j r

    and likewise with i = 0. As G'w = J'a, r = y - J'a - linear part. In tiles J_0 comes after the
    others, where rows have their weight.
    """
    series = tl.program_id(0).to(tl.int64)
    size = c + d + 1
    j, k = tl.arange(0, C)[:, None], tl.arange(0, D)[None, :]
    left = _exponents(centers, beta, series, c, d, C, D)
    mu = _centers(centers, series, c, d, C, D)
    slopes = _vector(slope, series, c, 0, c, C)[:, None]
    w = _vector(b, series, size, 0, c, C)[:, None]
    v = -slopes * w
    mix = tl.where(k == d, w, tl.where(k == d + 1, v, v * mu))
    a1 = _vector(a, series, d + 1, 1, d + 1, D)[None, :]
    a_tile = tl.where(k == d, tl.load(a + series * (d + 1)), a1)
    linear = tl.where(k == d + 1, -1.0, _vector(b, series, size, c, size, D)[None, :])
    bent = tl.zeros([C, D], tl.float64)
    straight = tl.zeros([C, D], tl.float64)
    others = tl.zeros([D, D], tl.float64)
    own = tl.zeros([D, D], tl.float64)
    for first in range(0, N, R):
        n = first + tl.arange(0, R)
        tile = _tile(rows, series, n, N, d, D)
        weight = tl.load(rows + (series * (d + 1) + d) * N + n, mask=n < N, other=0.0)[:, None]
        target = _vector(y, series, N, first, N, R)[:, None]
        squares = _vector(square, series, N, first, N, R)[:, None]
        phi = tl.exp(tl.dot(tl.where(k == d + 1, -squares, tile), left, out_dtype=tl.float64))
        mixed = tl.dot(phi, mix, out_dtype=tl.float64) * weight
        last = tl.sum(tl.where(k == d + 1, mixed, 0.0), axis=1)[:, None]
        x = tl.where(k < d, tile, 0.0)
        J = tl.where(k <= d, mixed - x * last, 0.0)
        tile = tl.where(k == d + 1, target, tile)
        r = -tl.sum(linear * tile + a_tile * J, axis=1)[:, None]
        ax = tl.sum(a1 * tile, axis=1)[:, None]
        phi = tl.trans(phi)
        straight = tl.dot(phi, J, straight, out_dtype=tl.float64)
        bent = tl.dot(phi, tl.where(k == d + 1, r, ax * J - x * r), bent, out_dtype=tl.float64)
        tile = tl.where(k == d + 1, r, tile)
        others = tl.dot(tl.trans(tile), J, others, out_dtype=tl.float64)
        own = tl.dot(tl.trans(J), J, own, out_dtype=tl.float64)
    rest = tl.sum(tl.where(k == d + 1, bent, 0.0), axis=1)[:, None]  # sums of phi r
    constants = _vector(constant, series, c, 0, c, C)[:, None]
    bent = slopes * bent + constants * straight + tl.where(k == d, -rest, slopes * mu * rest)
    place = tl.where(k == d, 0, k + 1)  # J_0 comes first
    K += series * (c + d + 2) * (d + 1) + place
    i = tl.arange(0, D)[:, None]
    tl.store(K + j * (d + 1), bent, mask=(j < c) & (k <= d))
    tl.store(K + (c + i) * (d + 1), others, mask=(i <= d + 1) & (k <= d))
    JJ += (series * (d + 1) + tl.where(i == d, 0, i + 1)) * (d + 1) + place
    tl.store(JJ, own, mask=(i <= d) & (k <= d))


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
