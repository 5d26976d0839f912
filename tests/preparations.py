"""Preparations of single series, to test what the package does for many."""

from rbfdiffnet.series.prepare import prepare_many
from rbfdiffnet.series.series import UnfitError


def prepare(y, inputs, *, effects=None, **settings):
    """Fix the preparation of one series; raise the reason where that is not possible."""
    (found,) = prepare_many([y], [inputs], [effects], **settings)
    if isinstance(found, UnfitError):
        raise found
    return found.preparation


def clean_series(preparation, y, inputs):
    """Return u and which of its values are observations."""
    ready = preparation.apply(y, inputs)
    return ready.u, ready.is_known
