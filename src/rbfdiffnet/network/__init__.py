"""One differential RBF network: basis, centers, widths, losses, trainers, choice of settings.

To add a basis, a center rule, a width rule or a trainer, add a function and its name to `BASES`,
`CENTERS`, `WIDTH_RULES` or `SOLVERS`. Nothing here knows what a time series is: it imports only
`support`.
"""
