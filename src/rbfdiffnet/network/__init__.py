"""One differential RBF network: basis, centers, widths, losses, trainers, choice of settings.

To add a basis, a center rule, a width rule, a loss or a trainer, add it to its file's registry.
Nothing here knows what a time series is: it imports only `support`.
"""
