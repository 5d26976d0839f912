"""How good forecasts were in backtests: for the command line and for reports alike."""

from rbfdiffnet.scoring.comparison import Comparison, compare, percent, sentence
from rbfdiffnet.scoring.models import Model, read_models
from rbfdiffnet.scoring.scores import Scores, score
from rbfdiffnet.scoring.windows import BASELINE, Windows, seasonal_naive

__all__ = ["BASELINE", "Comparison", "Model", "Scores", "Windows", "compare", "percent"]
__all__ += ["read_models", "score", "seasonal_naive", "sentence"]
