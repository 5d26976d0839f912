"""The parts of ``benchmarks/accuracy.py``: data, errors, methods, the runner and the summary."""
