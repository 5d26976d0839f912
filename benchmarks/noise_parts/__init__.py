"""The parts of ``benchmarks/noise.py``: data, tasks, rivals, the runner and the summary."""
