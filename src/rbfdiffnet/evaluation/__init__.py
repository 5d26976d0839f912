"""How good forecasts were in backtests: for the command line and for reports alike."""

from rbfdiffnet.evaluation.comparison import Comparison, better_rule, compare, percent, sentence
from rbfdiffnet.evaluation.models import Model, read_models
from rbfdiffnet.evaluation.scores import Scores, score
from rbfdiffnet.evaluation.windows import BASELINE, LAST, Windows, simple_forecasts

__all__ = ["BASELINE", "LAST", "Comparison", "Model", "Scores", "Windows", "better_rule"]
__all__ += ["compare", "percent", "read_models", "score", "sentence", "simple_forecasts"]
