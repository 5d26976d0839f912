"""How series are modeled: what was asked for, and what follows from the series otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rbfdiffnet.network.train import Settings
from rbfdiffnet.noise.filtering import StateFilter
from rbfdiffnet.series.differences import adf_test
from rbfdiffnet.series.transforms import Difference, Transform
from rbfdiffnet.support.arrays import Array
from rbfdiffnet.support.checks import Noise
from rbfdiffnet.support.parallel import SINGLE_MACHINE, Collective

_MANY_ROWS = 200  # from which on the mean of a window is a better level than its latest value
_VALUES_A_LAG, _FEWEST_LAGS = 8, 8  # of a series too short for the lags asked for
_NO_UNIT_ROOT = 1e-8  # p-value of the Dickey-Fuller test: far stricter than for differencing
_FEW_LAGS = (1,), (1, 2), (1, 2, 3)  # a window of a map, which can spare none of them
_UNLIKELY = 0.01  # p-value that is enough for these


@dataclass(frozen=True)
class Plan:
    """How series are modeled."""

    settings: Callable[[int], Settings]  # of the network, for a number of inputs
    season_length: int = 1
    longer_season: int | None = None  # 0 for none; None takes the usual one, or finds one
    lags: tuple[int, ...] | None = None  # ages of the inputs, ascending; None chooses them
    shorten: bool = False  # whether a series too short for the lags gets fewer of them
    level: str | None = None  # "mean", "last" or "none" (see `WindowModel`); None chooses by length
    transforms: tuple[str | Transform, ...] = ()  # as `series.transforms.fit_transforms` takes them
    log: bool = False  # whether logarithms are taken
    clean: bool = True  # whether outliers count as missing
    block: int = 1  # number of steps a network forecasts at once
    fast: bool = False  # whether networks of one output are trained by `batch.train`
    device: str = "cpu"  # where `batch.train` runs
    noise: Noise = None  # whether noise in the observations is treated; see `series_model`
    like: StateFilter | None = None  # what was learned from more of the same series
    thorough: bool = False  # whether each series in a stack is looked at for a rule of its own
    adds_up: bool = False  # whether forecasts are changed afterwards so that they add up
    collective: Collective = SINGLE_MACHINE  # the machines that hold parts of the panel

    @property
    def alone(self) -> Plan:
        """The same plan for one machine that has all it needs."""
        return replace(self, collective=SINGLE_MACHINE)

    def lags_for(self, n: int) -> tuple[int, ...]:
        """Return the lags for a series of n values."""
        if self.lags is not None:
            return self.lags
        return tuple(range(1, max(1, min(default_lags(self.season_length), n // 3)) + 1))

    def shortened(self, n: int) -> Plan | None:
        """Return the plan for a series of n values that is too short for the lags.

        It has a lag for every 8 values, or there is none: with fewer than 8 lags networks are no
        better than the last season or value.
        """
        n_lags = n // _VALUES_A_LAG
        if not self.shorten or self.lags is None or not _FEWEST_LAGS <= n_lags < len(self.lags):
            return None
        return replace(self, lags=self.lags[:n_lags], shorten=False)

    def level_for(self, *series: Array) -> str:
        """Return the level for transformed series: one for all of them.

        There is none where the series are differenced or surely return to their mean. Few lags
        need less certainty, since a level would cost one of them. Otherwise it is the mean of the
        window where series are long, and its latest value where they are short.
        """
        return self.level_of([self.tendency(z) for z in series])

    @property
    def _differs(self) -> bool:
        names = ("adf", "difference", "seasonal")
        return any(isinstance(t, Difference) or t in names for t in self.transforms)

    def tendency(self, z: Array) -> tuple[float, int]:
        """Return what the level depends on: a unit root's p-value where it matters, and length."""
        matters = self.level is None and not self._differs
        p_value = adf_test(z).p_value if matters else 1.0
        return float(np.nan_to_num(p_value, nan=1.0)), z.size  # 1 where the test has no answer

    def level_of(self, tendencies: Sequence[tuple[float, int]]) -> str:
        """Return the level for series of these tendencies; see `level_for`."""
        if self.level is not None:
            return self.level
        p_value, size = np.median(tendencies, axis=0)
        few = self.lags in _FEW_LAGS
        if self._differs or p_value < (_UNLIKELY if few else _NO_UNIT_ROOT):
            return "none"
        return "mean" if size >= _MANY_ROWS else "last"


def default_lags(season_length: int) -> int:
    """Return the number of lags for a season: four days or weeks, one or two longer seasons."""
    if season_length <= 4:
        return max(4, 2 * season_length)
    if season_length <= 7:
        return 4 * season_length
    if season_length == 24:
        return 48
    return season_length + max(3, min(4, season_length // 4))
