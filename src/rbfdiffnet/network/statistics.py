r"""Sufficient statistics: all that training on a fixed basis needs to know about the rows.

.. math::

    S = \sum_n v_n\, z_n z_n', \qquad z_n = (\theta_{11n}, \ldots, \theta_{Kcn},\ s_n,\ 1,\ y_n)

with :math:`\theta` the K terms of the c basis functions (see `network.basis`), s the linear
inputs, y the targets and v the weights of the rows. Statistics add up, over partitions of a
cluster as over time, and subtract: all rows but those of a fold are ``everything - fold``. Fits and
their errors on any such rows take milliseconds, however many rows there are. One row costs about
:math:`(cK)^2` operations, some ten Newton steps' worth, so statistics pay where the same rows are
fitted more than once: with many penalties, starts or folds, or with many targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk

from rbfdiffnet.network.basis import Array, GaussianBasis, mean_width
from rbfdiffnet.network.gram import InnerProducts, minimize
from rbfdiffnet.network.objective import Solution, Weights

__all__ = ["MOST_COLUMNS", "Statistics"]

#: Beyond, a single row costs more than a million operations, and training on rows is quicker.
MOST_COLUMNS = 1000

_BLOCK = 512  # rows at a time: their columns stay in the cache
_BASIS = ("centers", "beta", "metric", "unit", "order", "order_zero", "n_linear")


@dataclass(frozen=True)
class Statistics:
    r"""Weighted inner products of all columns of a training problem.

    Statistics are made by `of` or, step by step, by `empty` and `add`.

    Attributes
    ----------
    centers : ndarray of shape (c, d_active)
        Centers, in standardized inputs times the metric, for the inputs whose metric is not 0.
    beta : ndarray of shape (c,)
        Inverse widths, :math:`1 / (2 \sigma_j^2)`.
    metric : ndarray of shape (d,)
        What inputs are multiplied by in the basis functions.
    unit : float
        Unit of length of the derivatives.
    order : int
        Highest derivative.
    order_zero : bool
        Whether the basis functions themselves are the first term.
    n_linear : int
        The last so many inputs have a linear part.
    gram : ndarray of shape (k, k)
        S: the terms of the basis functions (functions within terms), the linear inputs, the
        constant 1 and the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from rbfdiffnet.network.statistics import Statistics
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.tanh(X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> centers, beta = X[:5], np.full(5, 0.1)
    >>> early = Statistics.of(centers, beta, X[:200], y[:200])
    >>> late = Statistics.of(centers, beta, X[200:], y[200:])
    >>> fits = early.solve([(1e-4, 1e-4), (1e9, 1e-4)])  # the latter without RBF part
    >>> errors = [float(late.loss(fit.weights)[0] / late.total) for fit, in fits]
    >>> errors[0] < errors[1]
    True
    >>> ((best,),) = (early + late).solve([(1e-4, 1e-4)])
    """

    centers: Array
    beta: Array
    metric: Array
    unit: float
    order: int
    order_zero: bool
    n_linear: int
    gram: Array

    @classmethod
    def empty(
        cls,
        centers: Array,
        beta: Array,
        *,
        order: int = 1,
        order_zero: bool = True,
        unit: float | None = None,
        metric: Array | None = None,
        n_linear: int | None = None,
        n_targets: int = 1,
    ) -> Statistics:
        """Return the statistics of no rows.

        Parameters
        ----------
        centers, beta, order, order_zero, metric, n_linear
            See above; by default all inputs count alike in the basis functions and are linear
            inputs as well.
        unit : float, optional
            The mean width by default.
        n_targets : int, default=1

        Returns
        -------
        Statistics

        Raises
        ------
        ValueError
            If there are more than `MOST_COLUMNS` columns besides the targets.
        """
        metric = np.ones(centers.shape[1]) if metric is None else metric
        n_linear = len(metric) if n_linear is None else n_linear
        if np.count_nonzero(metric) != centers.shape[1]:
            raise ValueError(
                f"centers have {centers.shape[1]} coordinates, but the metric has "
                f"{np.count_nonzero(metric)} inputs that count; they must be the same"
            )
        n_terms = int(order_zero) + order * centers.shape[1]
        n_columns = n_terms * len(centers) + n_linear + 1
        if n_columns > MOST_COLUMNS:
            raise ValueError(
                f"{len(centers)} basis functions with {n_terms} terms each and {n_linear} linear "
                f"inputs are {n_columns} columns, more than {MOST_COLUMNS}; use fewer centers, "
                "inputs or orders, or train on the rows"
            )
        gram = np.zeros((n_columns + n_targets, n_columns + n_targets))
        unit = mean_width(beta) if unit is None else unit
        return cls(centers, beta, metric, unit, order, order_zero, n_linear, gram)

    @classmethod
    def of(
        cls,
        centers: Array,
        beta: Array,
        X: Array,
        Y: Array,
        weight: Array | None = None,
        *,
        order: int = 1,
        order_zero: bool = True,
        unit: float | None = None,
        metric: Array | None = None,
        n_linear: int | None = None,
    ) -> Statistics:
        """Return the statistics of rows; see `empty` and `add` for the parameters."""
        nothing = cls.empty(
            centers,
            beta,
            order=order,
            order_zero=order_zero,
            unit=unit,
            metric=metric,
            n_linear=n_linear,
            n_targets=1 if Y.ndim == 1 else Y.shape[1],
        )
        return nothing.add(X, Y, weight)

    @property
    def n_terms(self) -> int:
        """Number of terms of a basis function, the length of a."""
        return int(self.order_zero) + self.order * int(self.centers.shape[1])

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return len(self.gram) - self.n_terms * len(self.centers) - self.n_linear - 1

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        constant = len(self.gram) - self.n_targets - 1
        return float(self.gram[constant, constant])

    def add(self, X: Array, Y: Array, weight: Array | None = None) -> Statistics:
        """Return the statistics with more rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Standardized inputs.
        Y : ndarray of shape (n, m) or (n,)
            Targets.
        weight : ndarray of shape (n,), optional
            Not negative; 1 by default.

        Returns
        -------
        Statistics
        """
        Y = Y[:, None] if Y.ndim == 1 else Y
        expected = (len(X), len(self.metric)), (len(X), self.n_targets), (len(X),)
        given = X.shape, Y.shape, (len(X),) if weight is None else weight.shape
        if given != expected:
            raise ValueError(
                f"X, Y and weight have the shapes {', '.join(map(str, given))}; "
                f"expected {', '.join(map(str, expected))}"
            )
        if weight is not None and np.any(weight < 0):
            raise ValueError("weights must not be negative; take rows out with subtract")
        gram = np.zeros_like(self.gram, order="F")
        for start in range(0, len(X), _BLOCK):
            part = slice(start, start + _BLOCK)
            columns = self._columns(X[part], Y[part])
            if weight is not None:
                columns *= np.sqrt(weight[part])
            gram = dsyrk(1.0, columns.T, beta=1.0, c=gram, trans=1, lower=1, overwrite_c=1)
        if not np.all(np.isfinite(gram)):
            raise ValueError("X, Y and weight must be finite; leave out rows with missing values")
        lower = np.tril(gram, -1)
        return replace(self, gram=self.gram + lower + lower.T + np.diag(np.diag(gram)))

    def merge(self, other: Statistics) -> Statistics:
        """Return the statistics of the rows of both; also ``self + other``."""
        self._check_same(other)
        return replace(self, gram=self.gram + other.gram)

    def subtract(self, other: Statistics) -> Statistics:
        """Return the statistics of the rows without those of another; also ``self - other``."""
        self._check_same(other)
        if other.total > self.total * (1.0 + 1e-9):
            raise ValueError(
                f"rows of weight {other.total:g} cannot be taken out of rows of weight "
                f"{self.total:g}"
            )
        return replace(self, gram=self.gram - other.gram)

    def __add__(self, other: Statistics) -> Statistics:
        return self.merge(other)

    def __sub__(self, other: Statistics) -> Statistics:
        return self.subtract(other)

    def targets(self, which: Sequence[int]) -> Statistics:
        """Return the statistics with only some of the targets."""
        n_columns = len(self.gram) - self.n_targets
        keep = np.concatenate([np.arange(n_columns), n_columns + np.asarray(which, dtype=int)])
        return replace(self, gram=self.gram[np.ix_(keep, keep)])

    def solve(
        self,
        penalties: npt.ArrayLike,
        starts: Array | None = None,
        *,
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> list[list[Solution]]:
        r"""Train a network for every penalty from every start.

        .. math::

            \min_{a, w, \lambda} \frac{1}{2 \sum_n v_n} \sum_{no} v_n \big(y_{no} - f_o(x_n)\big)^2
            + \tfrac12 \rho |a|^2 |w|^2 + \tfrac12 \rho_\lambda |\lambda|^2, \qquad |a| = 1

        by the exact Newton method of `network.trainers.varpro`. All targets share a; for an a of
        each target's own, use `targets`.

        Parameters
        ----------
        penalties : array-like of shape (n_penalties, 2)
            Pairs of :math:`\rho` and :math:`\rho_\lambda`; the constant is never penalized.
        starts : ndarray of shape (n_starts, terms), optional
            Weights a to start from; one start with all terms alike by default.
        max_iter, tol
            Most Newton steps; fraction of the objective below which a gradient is small enough.

        Returns
        -------
        list of lists of Solution
            For every penalty, one for every start: weights, objective, steps, and convergence.
        """
        pairs = np.asarray(penalties, dtype=np.float64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.all(pairs >= 0):
            raise ValueError(
                "penalties must be pairs of numbers that are not negative (RBF part, linear "
                f"part), got {penalties!r}"
            )
        starts = np.ones((1, self.n_terms)) if starts is None else starts
        if starts.ndim != 2 or starts.shape[1] != self.n_terms:
            raise ValueError(
                f"starts must have the shape (n_starts, {self.n_terms}), got {starts.shape}"
            )
        if not self.total > 0.0:
            raise ValueError("there are no rows to train on: add some first")
        n_starts = len(starts)
        solutions = minimize(
            self._products(),
            np.repeat(pairs, n_starts, axis=0),
            np.tile(starts, (len(pairs), 1)),
            max_iter=max_iter,
            tol=tol,
        )
        return [solutions[i : i + n_starts] for i in range(0, len(solutions), n_starts)]

    def loss(self, weights: Weights) -> Array:
        r"""Weighted sum of squared errors of a network with any weights.

        .. math:: \sum_n v_n \big(y_{no} - f_o(x_n)\big)^2

        Parameters
        ----------
        weights : Weights

        Returns
        -------
        ndarray of shape (m,)
        """
        terms = weights.a[:, None, None] * weights.w
        n_targets = self.n_targets
        columns = [-terms.reshape(-1, n_targets), -weights.linear, np.eye(n_targets)]
        signed = np.concatenate(columns)
        squares = np.einsum("io,io->o", signed, self.gram @ signed)
        return np.asarray(np.maximum(squares, 0.0))

    def to_arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return everything as arrays by name, to save or send them; see `from_arrays`."""
        return {name: np.asarray(getattr(self, name)) for name in (*_BASIS, "gram")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[np.generic]]) -> Statistics:
        """Return statistics from what `to_arrays` gave.

        Examples
        --------
        >>> import numpy as np
        >>> from rbfdiffnet.network.statistics import Statistics
        >>> some = Statistics.of(np.zeros((1, 1)), np.ones(1), np.ones((4, 1)), np.ones(4))
        >>> Statistics.from_arrays(some.to_arrays()).total
        4.0
        """
        plain = {n: v.item() if v.ndim == 0 else v for n, v in arrays.items()}
        return cls(**plain)  # type: ignore[arg-type]

    def _columns(self, X: Array, Y: Array) -> Array:
        """Return the columns z of rows, shape (k, n)."""
        active = self.metric > 0
        basis = GaussianBasis.on(
            X[:, active] * self.metric[active],
            self.centers,
            self.beta,
            order=self.order,
            order_zero=self.order_zero,
            unit=self.unit,
        )
        n_theta = self.n_terms * len(self.beta)
        columns = np.empty((len(self.gram), len(X)))
        theta = columns[:n_theta].reshape(self.n_terms, len(self.beta), len(X))
        for a, room in zip(np.eye(self.n_terms), theta, strict=True):
            basis.contract(a, out=room)
        columns[n_theta : n_theta + self.n_linear] = X[:, X.shape[1] - self.n_linear :].T
        columns[n_theta + self.n_linear] = 1.0
        columns[n_theta + self.n_linear + 1 :] = Y.T
        return columns

    def _products(self) -> InnerProducts:
        n_centers, n_terms = len(self.beta), self.n_terms
        n_theta, y = n_terms * n_centers, len(self.gram) - self.n_targets
        shape = (n_terms, n_centers)
        return InnerProducts(
            np.ascontiguousarray(self.gram[:n_theta, :n_theta]).reshape(*shape, *shape),
            self.gram[:n_theta, n_theta:y].reshape(*shape, -1),
            self.gram[:n_theta, y:].reshape(*shape, -1),
            self.gram[n_theta:y, n_theta:y],
            self.gram[n_theta:y, y:],
            float(np.trace(self.gram[y:, y:])),
            self.total,
        )

    def _check_same(self, other: Statistics) -> None:
        different = [
            name
            for name in (*_BASIS, "n_targets")
            if not np.array_equal(getattr(self, name), getattr(other, name))
        ]
        if different:
            raise ValueError(
                f"statistics of different bases cannot be combined: {', '.join(different)} "
                "must be the same"
            )
