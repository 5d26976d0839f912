"""Models of a panel that are networks: one for each series, fast ones for all, or a shared one.

`local` fits a network for each series, by `series_model` or, many at once, by `fast`; `shared` fits
one for all. To change how rows are cut or learned, start with `window_model`.
Nothing here knows the stack, which uses networks as one of its members.
"""
