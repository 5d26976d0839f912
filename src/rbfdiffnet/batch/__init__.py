"""Thousands of small networks at once: NumPy, numba, PyTorch and Triton behind one `Backend`.

To run the same training on other hardware, add a `Backend` with its few operations.
Nothing here knows what a time series is: it imports only `support` and `network`.
"""
