r"""The training problem of many networks: penalty and variable projection with a batch axis.

.. math::

    F(a) = \min_b \lVert y - A(a)\, b \rVert^2 + n \big(\rho \lVert a \rVert^2 \lVert w \rVert^2
    + \rho_\lambda \lVert \lambda \rVert^2\big), \qquad
    A(a) = [G(a), s, 1], \quad b = (w, \lambda, w_0), \quad
    G_j = \varphi_j\,\big(a_0 - 2 \beta_j u\, a \cdot (x - \mu_j)\big)

where u is the unit of the first derivatives. Given a, everything else is a linear solve of
c + d + 1 unknowns; a itself is found by damped Newton steps with the exact Hessian of F:

.. math::

    F'' = J'J + n\rho \lVert w \rVert^2 I - K' (A'A + D)^{-1} K, \qquad
    K = A'J - R + 2 n \rho\, w a', \qquad R_{ji} = \sum_n r_n\, \partial G_{jn} / \partial a_i

The same code runs on NumPy arrays and on PyTorch tensors, on any device (`batch.backend`).
"""

from __future__ import annotations

from typing import Any, Self

from rbfdiffnet.batch.backend import Backend
from rbfdiffnet.batch.centers import place_by_products, place_centers

_RIDGES = (1e-5, 1e-3, 1e-2, 1e-1, 1e4)  # on the RBF part; the last switches it off
_LINEAR_RIDGE = 1e-6, 1e-2  # on the linear part: always, and times (inputs / rows)^2
UNPENALIZED = 1e-9
ENOUGH = 3e-3  # of the objective: a smaller gain ends the training
MOST_DAMPING = 1e5
FIRST_DAMPING = 5.0  # of the mean curvature: far from a minimum the Hessian is indefinite


def pose_problem(
    backend: Backend, rows: Any, y: Any, n: Any, n_centers: int, width_factor: float
) -> Problem:
    """The training problem of a batch, in the form that is solved faster."""
    kind = Problem
    if rows.shape[2] + n_centers + 2 < rows.shape[1]:
        kind = backend.wide_problem or WideProblem
    return kind(backend, rows, y, n, n_centers, width_factor)


class Problem:
    """The training problem of a batch, in standardized units.

    `rows` (B, d + 1, N) are those of `Backend.rows`, of which the last n (B,) count; y is (B, N).
    """

    #: What there is for each series.
    arrays: tuple[str, ...] = ("n", "products", "fixed", "total", "linear_penalty")
    #: At most this share of the series is selected; 0 for what suits the backend.
    share_worth_selecting = 0.0

    def __init__(
        self, backend: Backend, rows: Any, y: Any, n: Any, n_centers: int, width_factor: float
    ) -> None:
        xp = self.xp = backend.xp
        self.backend, self.n, self.c = backend, n, n_centers
        self.centers, self.beta = place_centers(rows, n, n_centers, width_factor, backend)
        self.unit = xp.sqrt(0.5 / self.beta).mean(axis=1)
        slope = -2.0 * self.beta * self.unit[:, None]
        self.products = backend.products(rows, y, self.centers, self.beta, slope)
        target = backend.contract(rows, y[:, None])
        self.fixed = xp.concatenate([backend.contract(rows, rows), target], axis=2)
        self.total = (y**2).sum(axis=1)
        d = rows.shape[1] - 1
        column = backend.arange(self.c + d + 1, n)
        self.is_rbf = column < self.c
        linear, unpenalized = _linear_penalty(n, d)[:, None], n[:, None] * UNPENALIZED
        self.linear_penalty = xp.where(column < self.c + d, linear, unpenalized)

    def gram(self, a: Any) -> tuple[Any, Any]:
        """A'A and A'y."""
        xp, c = self.xp, self.c
        cross = self.products.gram(a)
        bottom = xp.concatenate([cross[:, :, c:-1].swapaxes(1, 2), self.fixed[:, :, :-1]], axis=2)
        moment = xp.concatenate([cross[:, :, -1], self.fixed[:, :, -1]], axis=1)
        return xp.concatenate([cross[:, :, :-1], bottom], axis=1), moment

    def penalty(self, a: Any, ridge: Any) -> Any:
        """Diagonal of D, shape (B, c + d + 1)."""
        rbf = self.n * (ridge + UNPENALIZED) * (a**2).sum(axis=1)
        return self.xp.where(self.is_rbf, rbf[:, None], self.linear_penalty)

    def solve_linear_part(self, a: Any, ridge: Any) -> tuple[Any, Any, Any]:
        """The root of the inverse of A'A + D, b, the objective."""
        return self.project(*self.gram(a), self.penalty(a, ridge))

    def project(self, gram: Any, moment: Any, penalty: Any) -> tuple[Any, Any, Any]:
        """The same, given A'A, A'y and the diagonal of D."""
        root = self.backend.root(gram, penalty)
        half = root @ moment[:, :, None]
        b = (root.swapaxes(1, 2) @ half)[..., 0]
        return root, b, self.total - (half**2).sum(axis=1)[:, 0]

    def loss(self, gram: Any, moment: Any, penalty: Any) -> tuple[Any, Any]:
        """The sum of the squares of what is left of the target, and the degrees of freedom."""
        root, b, objective = self.project(gram, moment, penalty)
        shrunk = (penalty * (root**2).sum(axis=1)).sum(axis=1)
        return objective - (penalty * b**2).sum(axis=1), moment.shape[1] - shrunk

    def choose_ridge(self, a: Any, gram: Any, moment: Any) -> Any:
        """Penalty with the lowest generalized cross-validation error at a."""
        xp = self.xp
        lowest, best = None, None
        for value in _RIDGES:
            ridge = value * xp.ones_like(self.n)
            loss, freedom = self.loss(gram, moment, self.penalty(a, ridge))
            score = self.n * loss / xp.clip(self.n - freedom, 1.0, None) ** 2
            if lowest is None:
                lowest, best = score, ridge
            else:
                best = xp.where(score < lowest, ridge, best)
                lowest = xp.where(score < lowest, score, lowest)
        return best

    def newton(self, a: Any, ridge: Any, root: Any, b: Any) -> tuple[Any, Any]:
        """Gradient and Hessian of F / 2 at a, the one that was solved for last."""
        xp, w = self.xp, b[:, : self.c]
        K, along, JJ = self.products.curvature(a, b)
        rho = (self.n * (ridge + UNPENALIZED))[:, None]
        K[:, : self.c] += 2.0 * (rho * w)[:, :, None] * a[:, None]
        size = rho[:, 0] * (w**2).sum(axis=1)
        half = root @ K
        hessian = JJ - half.swapaxes(1, 2) @ half
        lift = self.backend.diagonal(size[:, None] + xp.zeros_like(a))
        return size[:, None] * a - along, hessian + lift

    def minimize(self, a: Any, n_steps: int) -> tuple[Any, Any, Any, Any]:
        """Choose the penalty, then damped Newton steps on a.

        Every series has its own damping, keeps what is better, and leaves when it is done.
        """
        sums = self.gram(a)
        ridge = self.choose_ridge(a, *sums)
        root, b, value = self.project(*sums, self.penalty(a, ridge))
        result = (a, b, value, ridge)
        if n_steps > 0:
            self.descend(result, root, n_steps)
        return result

    def descend(self, result: tuple[Any, Any, Any, Any], root: Any, n_steps: int) -> None:
        """Damped Newton steps from what is known at a; the result is changed in place."""
        xp, backend, (a, b, value, ridge) = self.xp, self.backend, result
        damping = xp.ones_like(value) * FIRST_DAMPING
        slopes = self.newton(a, ridge, root, b)
        problem, positions, live = self, backend.arange(len(a), a), value == value
        for step in range(n_steps):
            trial = problem.step(a, slopes, damping)
            root, b_new, value_new = problem.solve_linear_part(trial, ridge)
            better = live & (value_new < value)
            done = better & (value - value_new < ENOUGH * value_new)
            a = xp.where(better[:, None], trial, a)
            b = xp.where(better[:, None], b_new, b)
            value = xp.where(better, value_new, value)
            damping = xp.where(better, 0.2 * damping, 20.0 * damping)
            live = live & ~done & (damping < MOST_DAMPING)
            for all_of_it, part in zip(result, (a, b, value), strict=False):
                all_of_it[positions] = part
            n_live = int(live.sum())
            if n_live == 0 or step == n_steps - 1:
                break
            stay = backend.worth_selecting(live, n_live, self.share_worth_selecting)
            if stay is not None:
                problem = problem.part(stay)
                state = (positions, a, b, value, ridge, damping, live, better, trial, root, b_new)
                positions, a, b, value, ridge, damping, live, better, trial, root, b_new = (
                    values[stay] for values in state
                )
                slopes = tuple(values[stay] for values in slopes)
            slopes = problem.renew(slopes, better, (trial, ridge, root, b_new))

    def step(self, a: Any, slopes: tuple[Any, ...], damping: Any) -> Any:
        """Where a damped Newton step from a leads, at length 1; `slopes` are those of `newton`."""
        xp, backend, (gradient, hessian) = self.xp, self.backend, slopes
        size = xp.abs(backend.diagonal_of(hessian)).mean(axis=1)
        lift = (damping * size + 1e-300)[:, None] + 0.0 * a
        trial = a - backend.solve(hessian + backend.diagonal(lift), gradient)
        return trial / xp.clip(xp.sqrt((trial**2).sum(axis=1)), 1e-12, None)[:, None]

    def renew(self, slopes: tuple[Any, ...], which: Any, at: tuple[Any, ...]) -> tuple[Any, ...]:
        """Slopes, made anew for the series of a mask; `at` is what `newton` takes."""
        xp, n = self.xp, self.backend.count(which)
        some = self.backend.worth_selecting(which, n, self.share_worth_selecting)
        if some is not None and n:
            new = self.part(some).newton(*(values[some] for values in at))
            for old, own in zip(slopes, new, strict=True):
                old[some] = own
        elif n:
            pairs = zip(self.newton(*at), slopes, strict=True)
            slopes = tuple(
                xp.where(which.reshape(-1, *[1] * (old.ndim - 1)), new, old) for new, old in pairs
            )
        return slopes

    def linear_part(self, a: Any, b: Any) -> Any:  # noqa: ARG002
        """Coefficients of the inputs and the constant, (B, d + 1), given what `minimize` found."""
        return b[:, self.c :]

    def part(self, which: Any) -> Self:
        """The problem of some of the series."""
        part = object.__new__(type(self))
        vars(part).update(vars(self))
        for name in self.arrays:
            value = getattr(self, name)
            setattr(part, name, value.part(which) if name == "products" else value[which])
        return part


class WideProblem(Problem):
    r"""The same problem where there are more inputs than rows.

    What the linear part leaves of the rows is a fixed matrix:

    .. math::

        F(a) = \min_w (y - G w)' M (y - G w) + n \rho \lVert a \rVert^2 \lVert w \rVert^2, \qquad
        M^{-1} = I + s s' / (n \rho_\lambda) + 1 1' / \varepsilon

    The gradient V g and the Hessian :math:`V W V' + \tau I` are made of few directions: the rows,
    the centers, that of :math:`a_0`, and a, which are the columns of V. So a Newton step is V times
    the solution of :math:`(W V'V + \tau I)\, x = g`.
    """

    arrays = ("n", "phi", "slope", "span", "inner", "y", "M", "My", "total")
    share_worth_selecting = 0.8  # as there is much to copy

    def __init__(
        self, backend: Backend, rows: Any, y: Any, n: Any, n_centers: int, width_factor: float
    ) -> None:
        xp = self.xp = backend.xp
        self.backend, self.n, self.y, self.c = backend, n, y, n_centers
        (batch, d, N), one = rows[:, :-1].shape, rows[:, -1]
        self.span = xp.zeros((batch, N + n_centers + 2, d + 1), **backend.kind(rows))
        self.span[:, :N, 1:] = rows[:, :-1].swapaxes(1, 2)
        X = self.span[:, :N, 1:]
        products = X @ X.swapaxes(1, 2)
        means, self.beta = place_by_products(products, one, n, n_centers, width_factor, backend)
        self.centers = means @ X
        self.span[:, N:-2, 1:], self.span[:, -2, 0] = self.centers, 1.0
        self.inner = self.span @ self.span.swapaxes(1, 2)
        self.unit = xp.sqrt(0.5 / self.beta).mean(axis=1)
        beta = self.beta[:, :, None]
        self.slope = -2.0 * beta * self.unit[:, None, None]
        square = backend.diagonal_of(self.inner)[:, None]
        gap = square[:, :, :N] - 2.0 * self.inner[:, N:-2, :N] + square[:, 0, N:-2, None]
        self.phi = xp.exp(-beta * gap) * one[:, None]
        half = backend.root(products / _linear_penalty(n, d)[:, None, None], xp.ones_like(y))
        M = half.swapaxes(1, 2) @ half
        along = (M @ one[:, :, None])[..., 0]
        self.constant = along / ((along * one).sum(axis=1) + n * UNPENALIZED)[:, None]
        self.M = M - self.constant[:, :, None] * along[:, None]
        self.My = _times(y, self.M)
        self.total = (y * self.My).sum(axis=1)
        self.freedom = N - backend.diagonal_of(self.M).sum(axis=1)

    def G(self, a: Any) -> Any:
        """G(a), (B, c, N)."""
        N, along = self.phi.shape[2], self.span[:, :-1] @ a[:, :, None]
        ahead = along[:, :N].swapaxes(1, 2) - along[:, N:-1]
        return self.phi * (self.slope * ahead + along[:, -1:])

    def gram(self, a: Any) -> tuple[Any, Any]:
        """G'MG and G'M."""
        G = self.G(a)
        GM = G @ self.M
        return GM @ G.swapaxes(1, 2), GM

    def penalty(self, a: Any, ridge: Any) -> Any:
        """Diagonal of D, (B, c)."""
        rbf = self.n * (ridge + UNPENALIZED) * (a**2).sum(axis=1)
        return rbf[:, None] + 0.0 * self.phi[:, :, 0]

    def project(self, gram: Any, moment: Any, penalty: Any) -> tuple[Any, Any, Any]:
        """The inverse of G'MG + D and G'M side by side, w, the objective."""
        inverse = self.xp.linalg.inv(gram + self.backend.diagonal(penalty))
        right = moment @ self.y[:, :, None]
        w = inverse @ right
        both = self.xp.concatenate([inverse, moment], axis=2)
        return both, w[..., 0], self.total - (right * w).sum(axis=1)[:, 0]

    def loss(self, gram: Any, moment: Any, penalty: Any) -> tuple[Any, Any]:
        """The sum of the squares of what is left of the target, and the degrees of freedom."""
        both, w, _ = self.project(gram, moment, penalty)
        used = both[:, :, : self.c] * (moment @ moment.swapaxes(1, 2))
        left = self.My - _times(w, moment)
        return (left**2).sum(axis=1), self.freedom + used.sum(axis=2).sum(axis=1)

    def newton(self, a: Any, ridge: Any, root: Any, b: Any) -> tuple[Any, ...]:
        """The vector g, W V'V + tau I, and the mean size of the Hessian's diagonal; b is w.

        The derivatives of G w are [diag(q), T, 0] V'.
        """
        xp, c, w, phi = self.xp, self.c, b[:, :, None], self.phi
        N, (inverse, GM) = phi.shape[2], (root[:, :, :c], root[:, :, c:])
        rho = (self.n * (ridge + UNPENALIZED))[:, None]
        size = rho * (w**2).sum(axis=1)
        r = (self.My - _times(b, GM))[:, None]
        T = xp.concatenate([-w * self.slope * phi, _times(b, phi)[:, None]], axis=1)
        q = -T[:, :c].sum(axis=1)[:, None]
        pull = phi * r
        K = GM @ T.swapaxes(1, 2)
        K[:, :, :c] += self.backend.diagonal((self.slope * pull).sum(axis=2))
        K[:, :, c] -= pull.sum(axis=2)
        K = xp.concatenate([GM * q - self.slope * pull, K, 2.0 * rho[:, :, None] * w], axis=2)
        W = K.swapaxes(1, 2) @ (-inverse @ K)
        TM = T @ self.M
        W[:, :N, :N] += q.swapaxes(1, 2) * self.M * q
        W[:, N:-1, :N] += TM * q
        W[:, :N, N:-1] += (TM * q).swapaxes(1, 2)
        W[:, N:-1, N:-1] += TM @ T.swapaxes(1, 2)
        g = xp.concatenate([-q * r, -(r @ T.swapaxes(1, 2)), size[:, None]], axis=2)[:, 0]
        self.span[:, -1] = a
        self.inner[:, -1] = (self.span @ a[:, :, None])[..., 0]
        self.inner[:, :, -1] = self.inner[:, -1]
        diagonal = xp.einsum("bji,bji->bi", W @ self.span, self.span) + size
        return g, _lift(W @ self.inner, size[:, 0]), xp.abs(diagonal).mean(axis=1)

    def step(self, a: Any, slopes: tuple[Any, ...], damping: Any) -> Any:
        """Where a damped Newton step from a leads, at length 1."""
        xp, backend, (g, system, size) = self.xp, self.backend, slopes
        x = backend.solve(_lift(system + 0.0, damping * size + 1e-300), g)
        trial = a - a * x[:, -1:] - _times(x[:, :-1], self.span[:, :-1])
        return trial / xp.clip(xp.sqrt((trial**2).sum(axis=1)), 1e-12, None)[:, None]

    def linear_part(self, a: Any, b: Any) -> Any:
        """Coefficients of the inputs and the constant, (B, d + 1), given a and w."""
        N = self.phi.shape[2]
        left = self.y - _times(b, self.G(a))
        linear = _times(_times(left, self.M), self.span[:, :N, 1:])
        linear = linear / _linear_penalty(self.n, linear.shape[1])[:, None]
        constant = (self.constant * left).sum(axis=1)[:, None]
        return self.xp.concatenate([linear, constant], axis=1)


def _linear_penalty(n: Any, d: int) -> Any:
    """The penalty of d linear coefficients: more, the fewer rows there are for an input."""
    always, few = _LINEAR_RIDGE
    return n * (always + few * (d / n) ** 2)


def _times(values: Any, A: Any) -> Any:
    """Vectors times matrices, (B, p) and (B, p, q) to (B, q)."""
    return (values[:, None] @ A)[:, 0]


def _lift(A: Any, by: Any) -> Any:
    """Add numbers (B,) to the diagonals of matrices (B, p, p), in place."""
    A.reshape(len(A), -1)[:, :: A.shape[1] + 1] += by[:, None]
    return A
