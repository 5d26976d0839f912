"""Errors of forecasts: metrics for frames, scores of backtests, and who was better.

`metrics` is public. To add an error to the tables of the command line and of reports, change
`scores`. Nothing here knows how forecasts are made, and nothing here imports the models.
"""

from rbfdiffnet.evaluation.backtest_frames import (
    BASELINE,
    LAST,
    BacktestRows,
    ModelColumns,
    find_models,
    simple_forecasts,
)
from rbfdiffnet.evaluation.scores import (
    Comparison,
    Scores,
    compare,
    describe_comparison,
    find_better_rule,
    format_percent,
    score_models,
)

__all__ = ["BASELINE", "LAST", "BacktestRows", "Comparison", "ModelColumns", "Scores", "compare"]
__all__ += ["describe_comparison", "find_better_rule", "find_models", "format_percent"]
__all__ += ["score_models", "simple_forecasts"]
