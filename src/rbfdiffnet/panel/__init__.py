"""The border to frames: pandas or polars columns to flat arrays on regular grids of time, and back.

To add a frame library, a frequency or a kind of input, change its file; the models see only arrays.
Nothing here knows models: it imports only `support` and `series`.
"""
