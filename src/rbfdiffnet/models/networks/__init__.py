"""Models of a panel that are networks: one for each series, fast ones for all, or a shared one.

`local`, `fast` and `shared` are the three; `series_model` and `window_model` are what they are made
of. To change how rows are cut or learned, start with `training_rows` and `window_model`. Nothing
here knows the stack, which uses networks as one of its members.
"""
