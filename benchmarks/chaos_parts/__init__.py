"""The parts of ``benchmarks/chaos.py``: its rivals."""
