"""What can forecast a panel: networks of single series, a shared one, a pretrained one, the stack.

To add a model, implement the protocol of `base` that all of them share; `intervals` makes intervals
of the errors that a model held out. Nothing here imports frames, `forecasting` or the forecaster.
"""
