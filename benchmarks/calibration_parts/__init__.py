"""The parts of ``benchmarks/calibration.py``: families of series, and the judge of intervals."""
