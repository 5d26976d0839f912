"""A network that was trained beforehand on simulated systems, and reads noisy series.

`network.read` is its forward pass, in NumPy; `series` forecasts with it; `simulate` draws the
systems and `train` trains it, both with PyTorch, which nothing else here imports.
"""
