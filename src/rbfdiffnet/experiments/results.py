"""What the runs show: tables beside the paper's numbers, and evidence as text.

The evidence is about four places where the paper's text and its numbers disagree: (1) the noise,
(2) the root in RMSSE, (3) the closed form of ridge regression, (4) the sides of a test.

References
----------
K. S. Gyamfi, J. Brusey, E. Gaura, "Differential radial basis function network for sequence
modelling", Expert Systems with Applications 189 (2022) 115982; arXiv 2010.06178.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES
from rbfdiffnet.experiments.logistic import LAGS, LOGISTIC_MODELS, NOISE_LEVELS, make_cell
from rbfdiffnet.experiments.runner import Task
from rbfdiffnet.network.basis import squared_distances

_NETWORKS = ("RBF-DiffNet", "u-RBFN", "n-RBFN")
# One row for each number of lags; RBF-DiffNet, u-RBFN and n-RBFN for each noise level.
_MAE = """
.277 .146 .0994  .286 .152 .103   .286 .14 .0987    .3 .109 .0916     .295 .138 .106
.133 .16 .166    .124 .162 .167   .143 .161 .157    .151 .139 .132    .18 .15 .144
.0879 .277 .311  .082 .283 .312   .0582 .291 .313   .0659 .301 .309   .0852 .299 .31
.0717 .223 .313  .0648 .199 .308  .063 .216 .315    .107 .248 .312    .141 .275 .309
.0542 .236 .314  .0517 .221 .315  .0631 .244 .314   .11 .293 .315     .162 .293 .314
"""

_MODELS = ("RBF-DiffNet", "u-RBFN", "n-RBFN", "ARIMA", "MLP", "LSTM")
# The six models on each of the series 1 to 30, two series in a line.
_RMSSE = """
.5 .461 .53 .513 .433 .46          .693 .78 .701 .686 .76 .749
.422 .621 .532 .512 .467 .489      .761 1.85 .695 .867 .801 .683
.702 .992 .972 .884 .833 .581      .54 .745 .564 .749 .664 .598
.625 .662 1.35 .492 .438 .653      .587 1.47 .786 .582 .552 .554
.609 1.33 .538 .556 .528 .616      .751 .771 1.45 .691 .743 .663
.945 1.14 1.09 .978 .935 .928      .895 2.25 1.76 .875 1.12 1.16
.859 .921 .936 .862 .697 1         .746 .945 .775 .923 .759 .725
.847 .836 1.02 .83 .837 1.03       .724 .9 1.38 .55 .521 .571
.663 .796 .704 .667 .686 .637      .526 .967 .643 .536 .578 .659
1.55 .85 1.37 1.11 1.38 1.12       .783 1.48 .977 .916 .877 .817
.858 1.07 .661 .809 .75 1.33       .627 .778 .719 .753 .704 .634
.466 .489 .472 .522 .648 .485      .637 .625 .674 .687 .78 .788
1.45 1.42 1.52 1.87 1.46 1.44      .68 .841 .973 .741 .731 .73
1.02 1.95 1.54 1.12 .988 .975      .816 .971 .793 1.03 .705 .761
.808 .797 .858 .821 .778 .81       .676 1.04 .849 .697 .67 .639
"""

PAPER_MEAN = dict(zip(_MODELS, (0.759, 1.02, 0.927, 0.794, 0.76, 0.776), strict=True))
PAPER_MEDIAN = dict(zip(_MODELS, (0.713, 0.911, 0.821, 0.751, 0.737, 0.704), strict=True))
#: Wilcoxon signed-rank test of RBF-DiffNet against the model.
PAPER_P_VALUES = {
    "u-RBFN": 3.473e-5,
    "n-RBFN": 2.098e-4,
    "ARIMA": 2.619e-2,
    "MLP": 0.43,
    "LSTM": 0.2783,
}
PAPER_FIT_SECONDS = dict(zip(_MODELS, (38.97, 1.27, 1.20, 33.34, 307.23, 633.61), strict=True))

_LOGISTIC = ["omega", "lag", "model", "seed", "mae", "paper_mae"]
_M5 = ["series", "model", "rmsse", "paper_rmsse", "fit_seconds"]
_SUMMARY = ["model", "mean", "median", "paper_mean", "paper_median", "p_value", "paper_p_value"]
_SUMMARY += ["fit_seconds", "ratio_to_lstm"]
_NOISY_CELLS = ((0.08, 1), (0.12, 1), (0.08, 4), (0.12, 4))  # noise level, number of lags


def paper_mae(omega: float, lag: int, model: str) -> float:
    """Mean absolute error on the logistic map, NaN where the paper has none."""
    if model not in _NETWORKS or omega not in NOISE_LEVELS or lag not in LAGS:
        return np.nan
    row = _MAE.split("\n")[1 + LAGS.index(lag)].split()
    return float(row[3 * NOISE_LEVELS.index(omega) + _NETWORKS.index(model)])


def paper_rmsse(number: int, model: str) -> float:
    """RMSSE on M5, NaN where the paper has none."""
    if model not in _MODELS or not 1 <= number <= 30:
        return np.nan
    return float(_RMSSE.split()[6 * (number - 1) + _MODELS.index(model)])


def logistic_table(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return a row for each result of `rbfdiffnet.experiments.logistic.run_cell`."""
    rows = [
        {**record, "paper_mae": paper_mae(record["omega"], record["lag"], record["model"])}
        for record in records
    ]
    frame = pd.DataFrame(rows, columns=_LOGISTIC)
    return frame.sort_values(["omega", "lag"], kind="stable", ignore_index=True)


def m5_table(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return a row for each result of `rbfdiffnet.experiments.m5.run_series`."""
    numbers = {name: number for number, name in enumerate(M5_LEVEL8_SERIES, start=1)}
    rows = [
        {**record, "paper_rmsse": paper_rmsse(numbers.get(record["series"], 0), record["model"])}
        for record in records
    ]
    return pd.DataFrame(rows, columns=_M5)


def m5_summary(table: pd.DataFrame, models: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a row for each model: means over the series, beside the paper's.

    ``p_value`` is of the two-sided test of RBF-DiffNet against the model on the series that both
    have. ``ratio_to_lstm`` says how many times longer the LSTM ensemble takes on such series.
    """
    errors = table.pivot(index="series", columns="model", values="rmsse")
    seconds = table.pivot(index="series", columns="model", values="fit_seconds")
    rows = [
        {
            "model": model,
            "mean": errors[model].mean(),
            "median": errors[model].median(),
            "paper_mean": PAPER_MEAN.get(model, np.nan),
            "paper_median": PAPER_MEDIAN.get(model, np.nan),
            "p_value": np.nan if model == "RBF-DiffNet" else _both_tests(errors, model)[0],
            "paper_p_value": PAPER_P_VALUES.get(model, np.nan),
            "fit_seconds": seconds[model].mean(),
            "ratio_to_lstm": _ratio_to_lstm(seconds, model),
        }
        for model in (models or list(dict.fromkeys(table["model"])))
        if model in errors
    ]
    return pd.DataFrame(rows, columns=_SUMMARY)


def signed_rank(
    x: npt.ArrayLike, y: npt.ArrayLike, alternative: Literal["two-sided", "less"] = "two-sided"
) -> float:
    r"""P-value of Wilcoxon's signed-rank test, from its exact distribution: paper, eq. (test).

    .. math:: W = \sum_{x_i > y_i} \operatorname{rank} |x_i - y_i|

    Differences are rounded to nine digits, so that those of printed numbers tie where they should.
    The result is NaN for fewer than two pairs that differ.
    """
    from scipy.stats import wilcoxon

    difference = np.round(np.asarray(x, dtype=np.float64) - np.asarray(y, dtype=np.float64), 9)
    difference = difference[difference != 0.0]  # with zeros older SciPy falls back to a normal one
    if difference.size < 2:
        return np.nan
    return float(wilcoxon(difference, alternative=alternative, method="exact").pvalue)


def _both_tests(errors: pd.DataFrame, model: str) -> tuple[float, float]:
    """Test RBF-DiffNet against a model, two-sided and one-sided; NaN without both columns."""
    if not {"RBF-DiffNet", model} <= set(errors):
        return np.nan, np.nan
    pairs = errors[["RBF-DiffNet", model]].dropna()
    x, y = pairs["RBF-DiffNet"], pairs[model]
    return signed_rank(x, y), signed_rank(x, y, "less")


def _ratio_to_lstm(seconds: pd.DataFrame, model: str) -> float:
    if "LSTM" not in seconds:
        return np.nan
    both = seconds[["LSTM"]].assign(model=seconds[model]).dropna()
    return float(both["LSTM"].mean() / both["model"].mean()) if len(both) else np.nan


def noise_evidence(n_seeds: int = 3) -> str:
    r"""Compare readings of the noise: variance or deviation, test part noisy or clean.

    .. math:: x_t = s_t + \omega e_t \qquad \text{or} \qquad x_t = s_t + \sqrt{\omega}\, e_t
    """
    readings = {
        "deviation, test clean": (1.0, False),
        "deviation, test noisy": (1.0, True),
        "variance, test clean": (0.5, False),
        "variance, test noisy": (0.5, True),
    }
    columns = "".join(f"  omega={omega} l={lag}" for omega, lag in _NOISY_CELLS)
    lines = [
        "1. The noise level is a standard deviation, and the test part has no noise.",
        f"   Mean absolute error of u-RBFN, mean of {n_seeds} seeds:",
        f"   {'omega read as':<22}{columns}   distance from the paper",
    ]
    paper = np.array([paper_mae(omega, lag, "u-RBFN") for omega, lag in _NOISY_CELLS])
    for name, (power, noisy) in readings.items():
        errors = np.array(
            [
                np.mean([_u_rbfn_error(omega**power, lag, s, noisy) for s in range(n_seeds)])
                for omega, lag in _NOISY_CELLS
            ]
        )
        distance = float(np.abs(errors - paper).mean())
        cells = "".join(f"  {error:>14.3f}" for error in errors)
        lines.append(f"   {name:<22}{cells}   {distance:.3f}")
    lines.append(f"   {'paper':<22}" + "".join(f"  {value:>14.3f}" for value in paper))
    return "\n".join(lines)


def _u_rbfn_error(noise: float, lag: int, seed: int, noisy: bool) -> float:
    cell = make_cell(noise, lag, seed, noise_on_test=noisy)
    model = LOGISTIC_MODELS["u-RBFN"](lag, seed).fit(cell.X, cell.y)
    return float(np.abs(model.predict(cell.X_test) - cell.y_test).mean())


def root_evidence(table: pd.DataFrame) -> str:
    """Compare mean RMSSE with and without the root that the paper's formula lacks."""
    lines = [
        "2. RMSSE has its root.",
        f"   {'Mean over the series':<22}  with root  without root  paper",
    ]
    for model in dict.fromkeys(table["model"]):
        errors = table.loc[table["model"] == model, "rmsse"].to_numpy()
        if model in PAPER_MEAN:
            lines.append(
                f"   {model:<22}  {errors.mean():>9.3f}  {np.mean(errors**2):>12.3f}"
                f"  {PAPER_MEAN[model]:.3f}"
            )
    return "\n".join(lines)


def ridge_evidence() -> str:
    r"""Compare the closed form of ridge regression with :math:`\Phi'y` and with :math:`\Phi y`.

    .. math:: w^* = (\Phi' \Phi + \gamma I)^{-1} \Phi' y

    The gradient of :math:`|\Phi w - y|^2 + \gamma |w|^2` must vanish there. For a network,
    :math:`\Phi y` is not even defined; it needs as many rows as centers, so the comparison takes a
    square :math:`\Phi`.
    """
    gamma = 0.1
    cell = make_cell(0.02, 2, seed=0)
    tall = np.exp(-squared_distances(cell.X, cell.X[::100]))
    rows = slice(0, tall.shape[1])
    square, y = tall[rows], cell.y[rows]
    hessian = square.T @ square + gamma * np.eye(len(y))

    def gradient(right: np.ndarray) -> float:
        w = np.linalg.solve(hessian, right)
        return float(np.linalg.norm(2.0 * square.T @ (square @ w - y) + 2.0 * gamma * w))

    return "\n".join(
        [
            "3. The closed form of ridge regression has Phi'y where the paper prints Phi y.",
            f"   Phi is {tall.shape[0]} x {tall.shape[1]} and y has {tall.shape[0]} values, so "
            "Phi y is not defined;",
            f"   with as many rows as centers, the norm of the gradient of the loss is "
            f"{gradient(square.T @ y):.1e}",
            f"   at the solution with Phi'y, and {gradient(square @ y):.1e} with Phi y.",
        ]
    )


def side_evidence(table: pd.DataFrame) -> str:
    """Compare the paper's p-values with both Wilcoxon tests on its printed rows and on ours."""
    numbers = range(1, 31)
    theirs = pd.DataFrame(
        {m: [paper_rmsse(n, m) for n in numbers] for m in ("RBF-DiffNet", *PAPER_P_VALUES)}
    )
    ours = table.pivot(index="series", columns="model", values="rmsse")
    title = "RBF-DiffNet against"
    lines, nearer = [f"   {title:<22}{'printed':>9}" + f"{'two-sided':>11}{'one-sided':>11}" * 2], 0
    for model, printed in PAPER_P_VALUES.items():
        both = _both_tests(theirs, model)
        distance = np.abs(np.log(np.array(both) / printed))
        nearer += int(distance[1] < distance[0])
        cells = "".join(f"{p:>11.3g}" if p == p else "" for p in (*both, *_both_tests(ours, model)))
        lines.append(f"   {model:<22}{printed:>9.3g}{cells}")
    return "\n".join(
        [
            "4. The paper's p-values look one-sided.",
            f"   Wilcoxon's signed-rank test, exact: {nearer} of {len(PAPER_P_VALUES)} printed "
            "p-values are nearer to the one-sided",
            "   test on the paper's own 30 rows (is RBF-DiffNet's error smaller?), none is equal.",
            f"   {'':<22}{'paper':>9}{'the 30 rows it prints':>22}{'our rows':>22}".rstrip(),
            *lines,
        ]
    )


def seed_evidence(records: Sequence[dict[str, Any]]) -> str:
    """Show how much the results of a network on M5 depend on the seed of K-Means.

    For each seed: the mean RMSSE, the two-sided p-value against RBF-DiffNet from the same seed,
    and the correlation with the paper's column. The text is empty without several seeds.
    """
    several = [record for record in records if len(record.get("rmsse_by_seed", ())) > 1]
    if not several:
        return ""
    n_seeds = max(len(record["rmsse_by_seed"]) for record in several)
    tables = [
        m5_table({**r, "rmsse": r["rmsse_by_seed"][seed], "fit_seconds": np.nan} for r in several)
        for seed in range(n_seeds)
    ]
    ours = [table.pivot(index="series", columns="model", values="rmsse") for table in tables]
    paper = tables[0].pivot(index="series", columns="model", values="paper_rmsse")
    rows: dict[str, list[str]] = {"One seed at a time:": [f"{seed}" for seed in range(n_seeds)]}
    for model in dict.fromkeys(tables[0]["model"]):
        rows[f"   {model} mean RMSSE"] = [f"{errors[model].mean():.3f}" for errors in ours]
        if model != "RBF-DiffNet":
            p_values = pd.Series([_both_tests(errors, model)[0] for errors in ours])
            if p_values.notna().any():
                rows[f"   {model} p-value, two-sided"] = [f"{p:.1e}" for p in p_values]
        if paper[model].notna().sum() > 2:
            correlations = [errors[model].corr(paper[model]) for errors in ours]
            rows[f"   {model} correlation with the paper"] = [f"{r:.3f}" for r in correlations]
    width = max(map(len, rows))
    return "\n".join(
        f"{name:<{width}}" + "".join(f"{cell:>9}" for cell in cells) for name, cells in rows.items()
    )


def evidence_tasks(n_seeds: int = 3) -> list[Task]:
    """List the tasks for the evidence that needs no data; a result has the evidence as ``text``."""
    return [
        Task(f"1. noise, {n_seeds} seeds", "noise", _as_record, (noise_evidence, n_seeds)),
        Task("3. closed form", "closed form", _as_record, (ridge_evidence,)),
    ]


def _as_record(evidence: Callable[..., str], *arguments: Any) -> dict[str, Any]:
    return {"text": evidence(*arguments)}
