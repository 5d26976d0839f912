"""Noise in the observations of a series: its clean trajectory, the map it follows, and filters.

`learn_trajectory` finds both, `filtering.StateFilter` forecasts from clean states,
`series_model.learn_series` needs no settings, `reader` is a network that was trained beforehand on
simulated systems, and `regressor.SeriesMixin` brings all of them to the estimators. Everything here
is about one series at a time. It may be changed without touching frames, panels or models, none of
which it imports.
"""

from rbfdiffnet.noise.learn import Trajectory, learn_trajectory

__all__ = ["Trajectory", "learn_trajectory"]
