"""Noise in the observations of a series: its clean trajectory, the map it follows, and filters.

`learn_trajectory` finds both, `filtering.StateFilter` forecasts from clean states,
`series_model.learn_series` needs no settings, and `regressor.SeriesMixin` brings them to the
estimators. Everything here is about one series at a
time. It may be changed without touching frames, panels or models, none of which it imports.
"""

from rbfdiffnet.noise.learn import Trajectory, learn_trajectory

__all__ = ["Trajectory", "learn_trajectory"]
