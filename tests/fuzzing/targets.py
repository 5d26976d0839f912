"""Names of the targets, and how much of a long run each of them gets."""

from importlib import import_module

#: Module, function, share of the cases.
_TABLE = {
    "regressor parameters": ("regressors", "parameters_of_any_kind", 10),
    "regressor data": ("regressors", "rows_of_any_kind", 12),
    "regressor series": ("regressors", "series_of_any_kind", 3),
    "forecaster parameters": ("forecaster", "parameters_of_any_kind", 14),
    "forecaster methods": ("forecaster", "arguments_of_any_kind", 14),
    "forecaster updates": ("forecaster", "rows_that_may_not_fit", 5),
    "frames": ("frames", "frames_of_any_kind", 14),
    "odd panels": ("odd_panels", "forecasts_of_odd_panels", 8),
    "models of odd panels": ("odd_panels", "models_of_odd_panels", 5),
    "ways that agree": ("agreement", "ways_that_agree", 8),
    "model files, bytes": ("model_files", "changed_bytes", 6),
    "model files, contents": ("model_files", "changed_contents", 10),
    "data files, bytes": ("data_files", "changed_bytes", 10),
    "data files, panels": ("data_files", "written_panels", 10),
    "data files, tables": ("data_files", "tables_as_found", 10),
    "commands": ("commands", "arguments_of_any_kind", 6),
    "arrays": ("arrays", "series_of_any_kind", 6),
    "metrics": ("arrays", "scores_of_any_kind", 4),
    "distributions": ("arrays", "distributions_of_any_kind", 4),
    "events": ("arrays", "events_of_any_kind", 3),
    "reports": ("reports", "reports_of_any_kind", 4),
}
NAMES = tuple(_TABLE)


def target(name):
    """Return the function of a target, which hypothesis calls with cases."""
    module, function, _ = _TABLE[name]
    return getattr(import_module(f"fuzzing.{module}"), function)


def shares(cases, names=NAMES):
    """Split a number of cases among targets."""
    total = sum(_TABLE[name][2] for name in names)
    return {name: max(1, round(cases * _TABLE[name][2] / total)) for name in names}
