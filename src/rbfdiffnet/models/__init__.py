"""What can forecast a panel: networks of single series, fast ones, a shared one, and the stack.

To add a model, implement the protocol that all of them share; intervals are made above the models.
Nothing here knows frames or the forecaster: it imports only `support` to `panel`.
"""
