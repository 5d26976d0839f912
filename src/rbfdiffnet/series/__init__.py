"""Series as arrays, made ready: outliers, gaps, effects, differences, windows, recursion.

To add a transform, a gap filling or an outlier rule, change its file; every model uses it.
Nothing here knows frames or panels: it imports only `support`, `network` and `batch`.
"""
