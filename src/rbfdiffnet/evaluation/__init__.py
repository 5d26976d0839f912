"""Errors of forecasts: metrics for frames, scores of backtests, and who was better.

`metrics` is public; `losses`, `quantile_frames` and `revisions` hold parts of it. To add an error
to the tables of the command line and of reports, change `scores`; `kinds` says when intervals
held much less than they promise. Nothing here knows how forecasts
are made, and nothing here imports the models.
"""

from rbfdiffnet.evaluation.backtest_frames import (
    BASELINE,
    LAST,
    BacktestRows,
    ModelColumns,
    find_models,
    simple_forecasts,
)
from rbfdiffnet.evaluation.kinds import Holding, Shortfall
from rbfdiffnet.evaluation.scores import (
    Comparison,
    Coverage,
    Scores,
    compare,
    compare_near_and_far,
    describe_comparison,
    describe_coverage,
    find_better_rule,
    score_models,
)

__all__ = ["BASELINE", "LAST", "BacktestRows", "Comparison", "Coverage", "Holding", "ModelColumns"]
__all__ += ["Scores", "Shortfall"]
__all__ += ["compare", "compare_near_and_far", "describe_comparison", "describe_coverage"]
__all__ += ["find_better_rule", "find_models", "score_models", "simple_forecasts"]
