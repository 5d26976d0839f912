"""The parts of ``benchmarks/speed.py``; each has ``run(options)``, which returns tables."""
