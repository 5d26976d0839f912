r"""One network for all series, with an output for every step ahead.

.. math:: \frac{\hat y_{t+k} - y_t}{d_t} = \lambda_k \cdot x + b_k
    + \sum_{j=1}^{c} w_{kj} \, a \cdot \nabla \varphi_j(x)

a linear part and differential basis functions of order 1 along the direction :math:`a` in which the
linear parts of a block of steps rise, on average; least absolute error, recent rows counting more.
The centers are shared by all steps. There is a row x for each origin of each series; see
`models.stack.rows`.

The network may start from other forecasts, and learn what they leave: then they are a further
input, and the fewer rows there are, the less is changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rbfdiffnet.batch.backend import place_on, to_numpy
from rbfdiffnet.models.stack.blocks import cover_steps
from rbfdiffnet.models.stack.histories import Histories
from rbfdiffnet.models.stack.rows import RowCut, Rows, RowTable, most_steps
from rbfdiffnet.network.basis import GaussianBasis, squared_distances
from rbfdiffnet.network.centers import kmeans
from rbfdiffnet.pretrained.inputs import namespace
from rbfdiffnet.support.arrays import Array, Ints
from rbfdiffnet.support.progress import check_wanted

_FEWEST_ROWS = 10
_CENTERS = 30
_ROWS_PER_CENTER = 20
_PLACED_ON, _STARTS = 2_000, 1  # rows, and starts of K-Means
_WIDTH_FACTOR = 2.0
_FAR = 5.0  # standard deviations within which basis functions tell inputs apart
_LINEAR, _SMOOTH = 1e-2, 0.1  # penalties
_FEW_ROWS = 0.1  # more penalty, times inputs by rows
_FEW_ROWS_TO_START = 1.0  # the same if there are forecasts to start from
_SOLVES, _MORE_SOLVES = 3, 6  # toward least absolute errors
_MANY = 2_000  # rows, of which single ones count little

# Of least absolute errors:
_NEAR = 0.1  # median residuals within which errors count as squares
_JITTER = 1e-10


@dataclass(frozen=True)
class DirectNetwork:
    """What was learned from the rows of series: forecasts of these series, or of others.

    Rows may reach fewer steps than were asked for. Then forecasts are fed back, and a network of
    its own forecasts the `rest`. The last one goes on and on, far ahead from nothing but forecasts.
    There is no network where there is nothing to learn.
    """

    cut: RowCut
    n_steps: int
    network: RowNetwork | None = None
    rest: DirectNetwork | None = None

    def forecast(self, histories: Histories, h: int, table: RowTable | None = None) -> Array:
        """Forecast series, whose latest rows may be known."""
        forecast = np.full((len(histories.values), h), np.nan)
        if self.network is None:
            return forecast
        now, first = (table or RowTable.of(histories, self.cut)).now, min(h, self.n_steps)
        found = self.network.respond(now.first_steps(first))
        forecast[now.series, :first] = now.base[:, None] + now.unit[:, None] * found
        if self.rest is not None and h > first:
            longer = histories.extend(forecast[:, :first])
            forecast[:, first:] = self.rest.forecast(longer, h - first)
        elif h > first:
            for k in range(first, h, first):
                histories = histories.move_on(forecast[:, k - first : k])
                n_steps = min(first, h - k)
                forecast[:, k : k + n_steps] = self.forecast(histories, n_steps)
        return forecast


def learn_direct(
    histories: Histories,
    h: int,
    n_centers: int = _CENTERS,
    table: RowTable | None = None,
    device: str = "cpu",
) -> DirectNetwork:
    """Learn to forecast h steps of series, whose rows may be known; or as many as are learned."""
    h = min(h, most_steps(histories))
    table = table or RowTable.learnable(histories, h)
    train, cut = table.train, table.cut
    n_steps = _count_learnable(train)
    if not n_steps:
        return DirectNetwork(cut, 0)
    train = train.first_steps(n_steps)
    network = learn_rows(train, table.season, n_centers, _FEW_ROWS, device)
    found = DirectNetwork(cut, n_steps, network)
    if n_steps < h:
        longer = histories.extend(found.forecast(histories, n_steps, table))
        found = replace(found, rest=learn_direct(longer, h - n_steps, n_centers, device=device))
    return found


@dataclass(frozen=True)
class Correction:
    """What is linear in the errors of forecasts made earlier; nothing where nothing was learned."""

    cut: RowCut
    n_steps: int
    network: RowNetwork | None = None

    def correct(
        self, histories: Histories, forecasts: Array, table: RowTable | None = None
    ) -> Array:
        """Return forecasts (n, h) of series, whose latest rows may be known, corrected."""
        if self.network is None:
            return forecasts
        now, h = (table or RowTable.of(histories, self.cut)).now, forecasts.shape[1]
        n_steps = min(h, self.n_steps)
        start = now.first_steps(n_steps).start_from(forecasts[now.series, :n_steps])
        found = self.network.respond(start)
        found = np.pad(found, ((0, 0), (0, h - n_steps)), mode="edge")  # no row reaches so far
        corrected = forecasts.copy()
        corrected[now.series] += now.unit[:, None] * found
        return corrected


def learn_correction(table: RowTable, earlier: Array, device: str = "cpu") -> Correction:
    """Learn to correct forecasts, given those (N, k) that rows start from; see `RowTable`."""
    train = table.train.select(table.starts)
    n_steps = _count_learnable(train)
    if not n_steps:
        return Correction(table.cut, 0)
    train = train.first_steps(n_steps).start_from(earlier[:, :n_steps])
    network = learn_rows(train, table.season, 0, _FEW_ROWS_TO_START, device)
    return Correction(table.cut, n_steps, network)


def _count_learnable(rows: Rows) -> int:
    """Return the number of steps ahead with rows enough."""
    return int((np.isfinite(rows.targets).sum(axis=0) >= _FEWEST_ROWS).sum())


@dataclass(frozen=True)
class RowNetwork:
    """A network from rows to targets: units of the inputs, basis functions, and blocks of steps."""

    shift: Array  # (1, p)
    scale: Array
    centers: Array | None  # (c, p)
    beta: float
    blocks: tuple[StepBlock, ...]

    def respond(self, rows: Rows) -> Array:
        """Return the targets (n, h) of rows, of as many steps as they have."""
        X, h = (rows.X - self.shift) / self.scale, rows.ahead.shape[1]
        basis = None if self.centers is None else _evaluate(X, self.centers, self.beta)
        blocks = [block for block in self.blocks if block.first < h]
        found = [block.respond(X, rows.ahead, basis) for block in blocks]
        return np.asarray(np.concatenate(found).T)


@dataclass(frozen=True)
class StepBlock:
    """Weights of k steps ahead, from step `first` on.

    `weights` (k, p + 1 + c + q) belong to the inputs, to 1, to basis functions along `direction`
    (p,) in units (1, c), and to inputs of the steps, whose shift and scale are (k, 1, q). Inputs
    are taken to lie within the bounds of the rows: `low` and `high` (p + 1 + c,), and those of the
    steps, (k, 1, q).
    """

    first: int
    weights: Array
    direction: Array | None
    unit: Array
    shift: Array
    scale: Array
    low: Array
    high: Array
    low_ahead: Array
    high_ahead: Array

    def respond(self, X: Array, ahead: Array, basis: GaussianBasis | None) -> Array:
        """Return targets (j, n) for rows with inputs X (n, p) and ``ahead`` (n, h, q)."""
        then = ahead[:, self.first : self.first + len(self.weights)].swapaxes(0, 1)
        k = len(then)
        then = (then - self.shift[:k]) / self.scale[:k]
        smooth = None
        if basis is not None and self.direction is not None:
            smooth = basis.contract(self.direction).T / self.unit
        shared = np.clip(_join(X, smooth), self.low, self.high)
        own, of_step = self.weights[:k, : self.low.size], self.weights[:k, self.low.size :, None]
        then = np.clip(then, self.low_ahead[:k], self.high_ahead[:k])
        return np.asarray(own @ shared.T + (then @ of_step)[:, :, 0])


def _join(X: Array, smooth: Array | None = None) -> Array:
    """Return inputs X (n, p), 1, and derivatives of basis functions (n, c)."""
    ones = np.ones((len(X), 1))
    return np.concatenate([X, ones] if smooth is None else [X, ones, smooth], axis=1)


def learn_rows(
    train: Rows, season: int, n_centers: int, few: float, device: str = "cpu"
) -> RowNetwork:
    """Learn the targets of rows by their weights."""
    check_wanted()
    weight, h = train.weight, train.targets.shape[1]
    shift, scale = _weighted_moments(train.X, weight)
    X = (train.X - shift) / scale
    centers, beta = _place_centers(X, n_centers)
    basis = None if centers is None else _evaluate(X, centers, beta)
    blocks = [
        _learn_block(
            first,
            X,
            train.ahead[:, first:last].swapaxes(0, 1),
            train.targets[:, first:last].T,
            weight,
            basis,
            few,
            device,
        )
        for first, last in cover_steps(h, season)
    ]
    return RowNetwork(shift, scale, centers, beta, tuple(blocks))


def _learn_block(
    first: int,
    X: Array,
    ahead: Array,
    targets: Array,
    weight: Array,
    basis: GaussianBasis | None,
    few: float,
    device: str,
) -> StepBlock:
    """Learn targets (k, N) of rows; inputs of the steps, ``ahead`` (k, N, q), join those of all."""
    n_steps, n_rows, q = ahead.shape
    known, p = np.isfinite(targets), X.shape[1]
    total = np.where(known, weight, 0.0)
    shift, scale = _weighted_moments(ahead, total)
    ahead = (ahead - shift) / scale
    shared = _join(X)
    linear = _LINEAR + few * (p + q) / total.sum(axis=1, keepdims=True)
    penalty = np.repeat(linear, p + 1 + q, axis=1)
    penalty[:, p] = 0.0
    direction, unit = None, np.ones((1, 0))
    if basis is not None:
        # Along the direction in which the linear part rises:
        rises = fit_least_absolute(shared, targets, weight, penalty, ahead, 0, device)[:, :p]
        rises /= np.linalg.norm(rises, axis=1, keepdims=True) + 1e-300
        direction = rises.mean(axis=0)
        smooth = basis.contract(direction).T
        _, unit = _weighted_moments(smooth, known.any(axis=0).astype(float))
        shared = _join(X, smooth / unit)
        rough = np.full((n_steps, smooth.shape[1]), _SMOOTH)
        penalty = np.insert(penalty, [p + 1] * smooth.shape[1], rough, axis=1)
    n_solves = _SOLVES if n_rows > _MANY else _MORE_SOLVES
    weights = fit_least_absolute(shared, targets, weight, penalty, ahead, n_solves, device)
    used, inside = shared[known.any(axis=0)], known[:, :, None]
    return StepBlock(
        first,
        weights,
        direction,
        unit,
        shift,
        scale,
        used.min(axis=0),
        used.max(axis=0),
        np.where(inside, ahead, np.inf).min(axis=1, keepdims=True),
        np.where(inside, ahead, -np.inf).max(axis=1, keepdims=True),
    )


def _place_centers(X: Array, n_centers: int) -> tuple[Array | None, float]:
    """Place basis functions among rows; return their centers (c, p), None for none, and beta."""
    n_centers = min(n_centers, len(X) // _ROWS_PER_CENTER)
    if n_centers < 2:
        return None, 0.0
    some = np.linspace(0, len(X) - 1, min(len(X), _PLACED_ON)).astype(np.int64)
    centers = kmeans(np.clip(X, -_FAR, _FAR)[some], n_centers, n_init=_STARTS)
    apart = squared_distances(centers, centers, expand=False)
    np.fill_diagonal(apart, np.inf)
    width = _WIDTH_FACTOR * float(np.sqrt(np.median(apart.min(axis=1))))
    return (centers, 0.5 / width**2) if width > 0.0 else (None, 0.0)


def _evaluate(X: Array, centers: Array, beta: float) -> GaussianBasis:
    """Evaluate the basis functions on rows; far away they do not tell inputs apart."""
    near, rates = np.clip(X, -_FAR, _FAR), np.full(len(centers), beta)
    return GaussianBasis.evaluate(near, centers, rates, order=1, order_zero=False)


def _weighted_moments(X: Array, weight: Array) -> tuple[Array, Array]:
    """Return weighted means and standard deviations (..., 1, p) of columns of X (..., n, p)."""
    share = (weight / weight.sum(axis=-1, keepdims=True))[..., None, :]
    mean = share @ X
    scale = np.sqrt(share @ (X - mean) ** 2)
    return mean, np.where(scale > 1e-9, scale, 1.0)


def fit_least_absolute(
    X: Array,
    Y: Array,
    weight: Array,
    penalty: Array,
    ahead: Array | None = None,
    steps: int = 3,
    device: str = "cpu",
) -> Array:
    r"""Return coefficients (k, p + q) of nearly least absolute error for k targets Y (k, n).

    Every solve is a weighted ridge regression of each target,

    .. math:: \min_{b_k} \sum_i w_i (y_{ki} - z_{ki} \cdot b_k)^2
        + \Big( \sum_i v_i \Big) \sum_j \lambda_{kj} b_{kj}^2, \qquad
        w_i \propto \frac{v_i}{\max(|r_i|, \epsilon)}, \quad \sum_i w_i = \sum_i v_i

    where z are inputs X (n, p) that all targets share and inputs ``ahead`` (k, n, q) of each. The
    size of a row's residuals in the solve before,

    .. math:: |r_i|^2 = \text{mean}_k \Big( \frac{y_{ki} - z_{ki} \cdot b_k}{m_k} \Big)^2

    in units of their medians m, decides how much it counts: a row that errs much counts less for
    all targets, so all of them rest on one weighted Gram matrix. For a single target the solves
    lead to its least absolute error. Targets may be unknown (NaN); a row that knows one knows those
    before. ``weight`` (n,) is v, ``penalty`` (k, p + q) is :math:`\lambda`, in units of the mean
    squared input, and ``steps`` the number of reweighted solves; 0 leaves the least squares.
    """
    n_known, (n_steps, n_rows), p = np.isfinite(Y).sum(axis=1), Y.shape, X.shape[1]
    order = np.argsort(-np.isfinite(Y).sum(axis=0), kind="stable")
    ahead = np.empty((*Y.shape, 0)) if ahead is None else ahead
    place = place_on(device)
    X, Y, weight, penalty = (place(a) for a in (X[order], Y[:, order], weight[order], penalty))
    A = place(np.ascontiguousarray(ahead.swapaxes(1, 2)[:, :, order]))  # rows last
    xp = namespace(X)
    known = xp.isfinite(Y)
    counts, Y, A = (
        known * xp.ones_like(weight),
        xp.where(known, Y, 0.0 * weight),
        A * known[:, None],
    )
    total, whole = counts @ weight, weight[: n_known[0]].sum()
    n_targets = xp.clip(counts.sum(0), 1.0, None)
    lift = place(np.eye(p + A.shape[1])) * ((penalty + _JITTER) * total[:, None])[:, None]
    now = weight
    for step in range(steps + 1):
        Xw, Aw, first = X * now[:, None], A * now, 0
        grams: list[Any] = []
        for stop in n_known[::-1].tolist():  # rows that know fewer and fewer targets
            more = Xw[first:stop].T @ X[first:stop]
            grams.append(grams[-1] + more if grams else more)
            first = stop
        cross = (A.reshape(-1, n_rows) @ Xw).reshape(n_steps, -1, p)
        upper = xp.concatenate([xp.stack(grams[::-1]), cross.swapaxes(1, 2)], axis=2)
        lower = xp.concatenate([cross, Aw @ A.swapaxes(1, 2)], axis=2)
        gram = xp.concatenate([upper, lower], axis=1) + lift
        moment = xp.concatenate([Y @ Xw, (Aw @ Y[:, :, None])[:, :, 0]], axis=1)
        b = xp.linalg.solve(gram, moment[:, :, None])[:, :, 0]
        if step < steps:
            away = abs(Y - b[:, :p] @ X.T - (b[:, None, p:] @ A)[:, 0])
            usual = _medians(away, known, n_known)
            away = away * counts / xp.clip(usual, 1e-12, None)[:, None]
            size = xp.einsum("kn,kn->n", away, away) / n_targets
            size = size**0.5
            near = xp.clip(_NEAR * _medians(size[None], known[:1], n_known[:1])[0], 1e-12, None)
            now = weight / xp.maximum(size, near)
            now = now * (whole / now[: n_known[0]].sum())
    return np.asarray(to_numpy(b))


def _medians(values: Any, known: Any, counts: Ints) -> Any:
    """Return the medians (k,) of the known values, so many, of rows (k, n)."""
    xp, rows = namespace(values), np.arange(len(counts))
    low, high = (counts - 1) // 2, counts // 2
    values = xp.where(known, values, xp.inf)
    if xp is np:
        values.partition(np.unique([low, high]), axis=1)
    else:
        values = values.sort(1).values
    return 0.5 * (values[rows, low] + values[rows, high])
