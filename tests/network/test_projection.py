"""Steps within a trust region."""

import numpy as np
import pytest

from rbfdiffnet.network.projection import TrustRegion


@pytest.mark.parametrize("radius", [0.01, 0.3, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_point_of_the_ball_is_lower(seed, radius):
    rng = np.random.default_rng(seed)
    a, gradient, points = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(5000, 4))
    hessian = rng.normal(size=(4, 4))
    hessian = hessian + hessian.T  # not convex
    region = TrustRegion.around(a, gradient, hessian, radius, unit_length=False)
    step = region.candidate() - a
    length = np.linalg.norm(step)
    assert length <= 1.01 * radius * (1.0 + 1e-9)
    points *= (length * rng.uniform(size=(5000, 1)) ** 0.25) / np.linalg.norm(points, axis=1)[
        :, None
    ]

    def model(s):
        return s @ gradient + 0.5 * np.sum(s @ hessian * s, axis=-1)

    assert model(step) <= model(points).min() + 1e-12


def test_the_radius_follows_the_gain():
    region = TrustRegion.around(np.zeros(1), np.ones(1), np.eye(1), 0.5, unit_length=False)
    assert region.candidate() == pytest.approx(-0.5, rel=0.02)
    assert not region.accepts(-1.0)
    assert region.radius == pytest.approx(0.125, rel=0.02)
    region.candidate()
    assert region.accepts(1.0)
    assert region.radius == pytest.approx(0.25, rel=0.02)
