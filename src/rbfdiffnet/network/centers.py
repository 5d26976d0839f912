r"""Where the basis functions sit: K-Means, self-organizing map and forward selection.

`CENTERS` has these rules by name: ``kmeans``, ``som`` and ``forward``. All take weighted rows, and
a weight of 3 means the same as three copies of a row. No rule depends on the order of the rows.
Each returns at most ``n_centers`` centers, and no more than there are distinct rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rbfdiffnet.network.basis import gaussian, squared_distances
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import as_floats, call_given, check_choice

__all__ = [
    "CENTERS",
    "Placement",
    "forward_selection",
    "kmeans",
    "place_centers",
    "self_organizing_map",
]

#: Called as ``placement(X, n_centers, y=..., weight=..., rng=...)`` with rows (n, d), the most
#: centers wanted, targets (n, m), weights of the rows (n,) and a source of random numbers; returns
#: the centers (c, d). A rule takes what it does not need as ``**_``.
Placement = Callable[..., Array]


def kmeans(
    X: Array,
    n_centers: int,
    *,
    weight: Array | None = None,
    rng: np.random.Generator | None = None,
    n_init: int | None = None,
    max_iter: int = 100,
    start: Array | None = None,
) -> Array:
    r"""Centers by K-Means, greedy k-means++ seeds and Lloyd's steps: paper, eq. (kmeans).

    .. math::

        \min_{\mu} \sum_n v_n \min_j \lVert x_n - \mu_j \rVert^2

    where :math:`v_n` are the weights of the rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    n_centers : int
    weight : ndarray of shape (n,), optional
        Weights of the rows, all positive; equal by default.
    rng : numpy.random.Generator, optional
        Source of the seeds; ``default_rng(0)`` if omitted.
    n_init : int, optional
        Number of starts, of which the best is kept. By default 20 for up to 8 centers, 5 for up to
        16 and 1 for more: among few centers a badly placed one matters.
    max_iter : int, default=100
        Most rounds of each start. A single start ends when a round lowers the sum by less than
        1e-4 of it; the best of several is followed until nothing changes.
    start : ndarray of shape (c, d), optional
        Centers to begin with, instead of seeds; there is one start then.

    Returns
    -------
    ndarray of shape (c, d)

    References
    ----------
    D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.centers import kmeans
    >>> kmeans(np.array([[0.0], [0.2], [5.0], [5.2]]), 2)
    array([[0.1],
           [5.1]])
    """
    X, weight = _sort_rows(X, weight)
    rng = np.random.default_rng(0) if rng is None else rng
    if start is not None:
        n_init = 1
    elif n_init is None:
        n_init = 20 if n_centers <= 8 else 5 if n_centers <= 16 else 1
    mean = np.average(X, axis=0, weights=weight)  # distances are expanded around it
    best, lowest = np.zeros((1, X.shape[1])), np.inf
    for _ in range(n_init):
        seeds = _plus_plus(X - mean, weight, n_centers, rng) if start is None else start - mean
        centers, inertia = _lloyd(X - mean, weight, seeds, max_iter, tol=1e-4)
        if inertia < lowest:
            best, lowest = centers, inertia
    if n_init > 1:
        best, _ = _lloyd(X - mean, weight, best, max_iter, tol=0.0)
    best = best + mean
    return best[np.lexsort(best.T[::-1])]


def self_organizing_map(
    X: Array, n_centers: int, *, weight: Array | None = None, n_epochs: int = 50
) -> Array:
    r"""Centers by a self-organizing map, trained in batch: paper, eq. (som).

    .. math::

        \mu_j \leftarrow \frac{\sum_n v_n h_{j b(n)} x_n}{\sum_n v_n h_{j b(n)}}, \qquad
        h_{jb} = \exp\!\left(-\frac{\lVert g_j - g_b \rVert^2}{2 \rho^2}\right)

    where :math:`b(n)` is the unit nearest to row n, :math:`g_j` its place on the grid and the
    radius :math:`\rho` shrinks from half the grid's side to a third of a step. The units start
    on the plane of the first two principal axes, so nothing is random.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    n_centers : int
    weight : ndarray of shape (n,), optional
    n_epochs : int, default=50

    Returns
    -------
    ndarray of shape (c, d)

    References
    ----------
    T. Kohonen, "Essentials of the self-organizing map", Neural Networks 37 (2013) 52-65.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.centers import self_organizing_map
    >>> X = np.linspace(0.0, 1.0, 101)[:, None]
    >>> np.sort(self_organizing_map(X, 4).ravel()).round(1)
    array([0.1, 0.4, 0.6, 0.9])
    """
    X, weight = _sort_rows(X, weight)
    n_distinct = 1 + int(np.any(np.diff(X, axis=0) != 0, axis=1).sum())
    n_centers = min(n_centers, n_distinct)
    rows = max(r for r in range(1, int(n_centers**0.5) + 1) if n_centers % r == 0)
    grid = np.stack(np.divmod(np.arange(n_centers), n_centers // rows), axis=1).astype(float)
    steps = squared_distances(grid, grid)
    centers = _principal_plane(X, weight, grid)
    start, end = max(n_centers // rows / 2.0, 0.5), 1.0 / 3.0
    for epoch in range(n_epochs):
        radius = start * (end / start) ** (epoch / max(n_epochs - 1, 1))
        nearest = squared_distances(X, centers).argmin(axis=1)
        means, mass = _cluster_means(X, weight, nearest, n_centers)
        pull = np.exp(-steps / (2.0 * radius**2)) * mass
        total = pull.sum(axis=1)
        reached = total > 0
        centers[reached] = (pull[reached] @ means) / total[reached, None]
    return centers


def forward_selection(
    X: Array,
    y: Array,
    n_centers: int,
    *,
    weight: Array | None = None,
    width: float | None = None,
    ridge: float = 1e-6,
    max_candidates: int = 400,
) -> Array:
    r"""Centers picked one by one by leave-one-out error: paper, eq. (forward).

    Orthogonal least squares keeps the candidate columns orthogonal to those already chosen, so the
    leave-one-out error of adding candidate p follows from its own column alone:

    .. math::

        E_p = \sum_n v_n \left(\frac{r_n - g\, p_n}{\eta_n - p_n^2 / (p \cdot p + \gamma)}\right)^2

    where r is the residual so far, :math:`1 - \eta` the leverage so far, and
    :math:`g = p \cdot r / (p \cdot p + \gamma)`. The candidate with the lowest error is added until
    the error no longer falls or ``n_centers`` are chosen.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,) or (n, m)
        Targets; their leave-one-out errors are added up.
    n_centers : int
        Most centers to pick.
    weight : ndarray of shape (n,), optional
    width : float, optional
        Width of the candidate Gaussians; the largest distance from the mean divided by
        ``sqrt(n_centers / 2)`` by default, the max-distance rule for the data as a whole.
    ridge : float, default=1e-6
        :math:`\gamma`, relative to the number of rows.
    max_candidates : int, default=400
        Larger data sets offer this many K-Means centers as candidates instead of their rows.

    Returns
    -------
    ndarray of shape (c, d)

    References
    ----------
    S. Chen, C. Cowan, P. Grant, "Orthogonal least squares learning algorithm for radial basis
    function networks", IEEE Trans. Neural Networks 2 (1991) 302-309; M. Orr, "Regularization in
    the selection of radial basis function centers", Neural Computation 7 (1995) 606-623.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.centers import forward_selection
    >>> X = np.linspace(-3.0, 3.0, 61)[:, None]
    >>> y = np.exp(-0.5 * (X.ravel() - 1.0) ** 2)
    >>> forward_selection(X, y, 1, width=1.0).round(6)
    array([[1.]])
    """
    X, weight, y = _sort_rows(X, weight, y.reshape(len(X), -1))
    candidates = np.unique(X, axis=0)
    if len(candidates) > max_candidates:
        candidates = kmeans(X, max_candidates, weight=weight, n_init=1, max_iter=5)
    if width is None:
        reach = np.sqrt(squared_distances(X, X.mean(axis=0)[None], expand=False).max())
        width = 2.0 * float(reach) / np.sqrt(2.0 * n_centers)
    if not width > 0.0:
        return candidates[:1]
    columns = gaussian(X, candidates, np.full(len(candidates), 0.5 / width**2))
    chosen = _pick_columns(columns, y, weight, min(n_centers, len(candidates)), ridge)
    return candidates[chosen] if chosen else candidates[:1]


def _pick_columns(columns: Array, y: Array, weight: Array, most: int, ridge: float) -> list[int]:
    """Pick columns (n, p) one by one by leave-one-out error of y (n, m); see above."""
    root = np.sqrt(weight)[:, None]
    residual = root * (y - np.average(y, axis=0, weights=weight))
    # The bias is part of every model: its mean leaves the columns, its leverage leaves the slack.
    constant = root / np.linalg.norm(root)
    columns = root * columns
    columns -= constant @ (constant.T @ columns)
    slack = np.full(len(y), 1.0 - 1.0 / weight.sum())
    power = np.einsum("np,np->p", columns, columns)
    smallest = 1e-10 * power
    gamma = ridge * weight.sum()
    chosen: list[int] = []
    lowest = float(np.sum((residual / np.maximum(slack, 1e-6)[:, None]) ** 2))
    for _ in range(most):
        gain = columns.T @ residual / (power + gamma)[:, None]
        leverage = columns**2 / (weight[:, None] * (power + gamma))
        slacks = np.maximum(slack[:, None] - leverage, 1e-6)
        errors = np.zeros(len(power))
        for o in range(y.shape[1]):
            left_out = (residual[:, o : o + 1] - columns * gain[:, o]) / slacks
            errors += np.sum(left_out**2, axis=0)
        errors[power <= smallest] = np.inf  # spanned by the chosen columns
        pick = int(errors.argmin())
        if not errors[pick] < lowest:
            break
        lowest = errors[pick]
        chosen.append(pick)
        column = columns[:, pick : pick + 1].copy()
        residual = residual - column * gain[pick]
        slack = slacks[:, pick]
        columns -= column @ (column.T @ columns) / power[pick]
        power = np.einsum("np,np->p", columns, columns)
    return chosen


#: The rules to place centers, by name.
CENTERS: dict[str, Placement] = {
    "kmeans": lambda X, n, *, weight, rng, **_: kmeans(X, n, weight=weight, rng=rng),
    "som": lambda X, n, *, weight, **_: self_organizing_map(X, n, weight=weight),
    "forward": lambda X, n, *, y, weight, **_: forward_selection(X, y, n, weight=weight),
}


def place_centers(
    how: str | Placement,
    X: Array,
    n_centers: int,
    *,
    y: Array,
    weight: Array | None = None,
    rng: np.random.Generator | None = None,
) -> Array:
    """Place centers by a name in `CENTERS`, or by a function of that kind.

    Parameters
    ----------
    how : str or callable
    X : ndarray of shape (n, d)
    n_centers : int
    y : ndarray of shape (n, m)
        Targets.
    weight : ndarray of shape (n,), optional
    rng : numpy.random.Generator, optional

    Returns
    -------
    ndarray of shape (c, d)

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.centers import place_centers
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2]])
    >>> place_centers("kmeans", X, 2, y=X)
    array([[0.1],
           [5.1]])
    >>> place_centers(lambda X, n_centers, **_: X[:n_centers], X, 2, y=X)
    array([[0. ],
           [0.2]])
    """
    if isinstance(how, str):
        check_choice("centers", how, CENTERS)
        how = CENTERS[how]
    weight = np.ones(len(X)) if weight is None else weight
    rng = np.random.default_rng(0) if rng is None else rng
    found = call_given("centers", how, X, n_centers, y=y, weight=weight, rng=rng)
    centers = as_floats("centers: what the function returned", found)
    if centers.ndim != 2 or centers.shape[1] != X.shape[1] or not len(centers):
        raise ValueError(
            f"centers: the function must return an array with {X.shape[1]} columns like X; it "
            f"returned one of shape {centers.shape}"
        )
    if not np.all(np.isfinite(centers)):
        raise ValueError("centers: the function returned numbers that are not finite")
    return centers


def _sort_rows(X: Array, weight: Array | None, *others: Array) -> tuple[Array, ...]:
    """Sort the rows, so that nothing depends on the order they came in; weights are 1 if None."""
    order = np.lexsort(X.T[::-1])
    weight = np.ones(len(X)) if weight is None else weight
    return tuple(values[order] for values in (X, weight, *others))


def _cluster_means(
    X: Array, weight: Array, labels: npt.NDArray[np.intp], n_clusters: int
) -> tuple[Array, Array]:
    """Return weighted mean and total weight of every cluster (mean 0 where empty)."""
    member = np.zeros((n_clusters, len(X)))
    member[labels, np.arange(len(X))] = weight
    mass = member.sum(axis=1)
    return (member @ X) / np.where(mass > 0, mass, 1.0)[:, None], mass


def _lloyd(
    X: Array, weight: Array, centers: Array, max_iter: int, tol: float
) -> tuple[Array, float]:
    """Run Lloyd's algorithm; return the centers and the weighted sum of squared distances."""
    X = np.ascontiguousarray(X.T)  # rows of data are contiguous
    norms = np.einsum("in,in->n", X, X)
    rows = np.arange(X.shape[1])
    previous = np.inf
    for _ in range(max_iter):
        half = centers @ X
        np.subtract(0.5 * np.einsum("ji,ji->j", centers, centers)[:, None], half, out=half)
        labels = half.argmin(axis=0)
        distance = np.maximum(norms + 2.0 * half[labels, rows], 0.0)
        inertia = float(weight @ distance)
        if previous - inertia <= tol * inertia:
            break
        previous = inertia
        centers, mass = _cluster_means(X.T, weight, labels, len(centers))
        for j in np.flatnonzero(mass == 0):  # restart an empty cluster where rows are served worst
            worst = int(distance.argmax())
            centers[j], distance[worst] = X[:, worst], 0.0
    return centers, previous


def _plus_plus(X: Array, weight: Array, n_centers: int, rng: np.random.Generator) -> Array:
    """Return greedy k-means++ seeds: of a few rows drawn by distance, the most helpful one."""
    n_trials = 2 + int(np.log(n_centers))
    first = np.searchsorted(np.cumsum(weight), rng.random() * weight.sum(), side="right")
    seeds = [X[min(int(first), len(X) - 1)]]
    closest = squared_distances(X, seeds[0][None]).ravel()
    spread = np.abs(X).max() ** 2
    while len(seeds) < n_centers:
        closest[closest <= 1e-14 * spread] = 0.0  # rounding
        mass = np.cumsum(weight * closest)
        draws = rng.random(n_trials) * mass[-1]
        if not mass[-1] > 0:  # every distinct row is a seed already
            break
        picks = np.minimum(np.searchsorted(mass, np.sort(draws), side="right"), len(X) - 1)
        trial = np.minimum(squared_distances(X[picks], X), closest)
        left = trial @ weight
        # Two rows nearest to each other tie, and rounding must not decide between them.
        winner = int(np.flatnonzero(left <= left.min() * (1.0 + 1e-9))[0])
        seeds.append(X[picks[winner]])
        closest = trial[winner]
    return np.array(seeds)


def _principal_plane(X: Array, weight: Array, grid: Array) -> Array:
    """Spread grid positions over the plane of the first two principal axes."""
    mean = np.average(X, axis=0, weights=weight)
    covariance = np.cov(X.T, aweights=weight, bias=True).reshape(X.shape[1], X.shape[1])
    variance, axes = np.linalg.eigh(covariance)
    axes = axes[:, ::-1][:, :2] * np.sqrt(np.maximum(variance[::-1][:2], 0.0))
    axes *= np.where(axes.sum(axis=0) < 0, -1.0, 1.0)  # eigenvectors have no sign of their own
    span = np.maximum(grid.max(axis=0), 1.0)
    place = 2.0 * grid / span - np.where(grid.max(axis=0) > 0, 1.0, 0.0)
    return np.asarray(mean + place[:, ::-1][:, : axes.shape[1]] @ axes.T)
