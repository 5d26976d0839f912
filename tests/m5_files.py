"""M5 for tests: where the real data may be, and small files in the competition's formats."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbfdiffnet.datasets.m5 import M5_LEVEL8_SERIES, M5_N_DAYS

DAYS = [f"d_{day}" for day in range(1, M5_N_DAYS + 1)]


def real_m5():
    """Return the path of a real level-8 file, or skip the test."""
    folder = os.environ.get("RBFDIFFNET_M5")
    places = [folder] if folder else []
    places.append(str(Path(__file__).parents[2] / "shared" / "data" / "m5"))
    for place in places:
        if Path(place).exists():
            return place
    return pytest.skip("no M5 data: name its folder in the environment variable RBFDIFFNET_M5")


def sales(n_days=M5_N_DAYS, seed=0):
    """Return made-up sales by day and series: a weekly season, a slow walk and a closed day."""
    rng = np.random.default_rng(seed)
    week = np.array([1.0, 0.9, 0.9, 0.95, 1.1, 1.4, 1.3])[np.arange(n_days) % 7]
    level = 200 + rng.normal(size=(n_days, 30)).cumsum(axis=0)
    values = np.round(np.maximum(level * week[:, None] + 9 * rng.normal(size=(n_days, 30)), 1.0))
    values[300] = 0.0
    return pd.DataFrame(values.astype(int), columns=list(M5_LEVEL8_SERIES))


def level8_frame(seed=0):
    frame = sales(seed=seed)
    frame.insert(0, "date", pd.date_range("2011-01-29", periods=M5_N_DAYS).strftime("%Y-%m-%d"))
    frame.insert(1, "d", DAYS)
    return frame


def items_frame(n_items=2, seed=0):
    """Return the competition's wide layout with a few items for each store and category."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(n_items):
        for name in reversed(M5_LEVEL8_SERIES):
            store, category = name[:4], name[5:]
            ids = {
                "id": f"{category}_1_{item:03}_{store}_evaluation",
                "item_id": f"{category}_1_{item:03}",
                "dept_id": f"{category}_1",
                "cat_id": category,
                "store_id": store,
                "state_id": store[:2],
            }
            rows.append((ids, rng.poisson(3.0, size=M5_N_DAYS)))
    frame = pd.DataFrame([ids for ids, _ in rows])
    return pd.concat([frame, pd.DataFrame([v for _, v in rows], columns=DAYS)], axis=1)
