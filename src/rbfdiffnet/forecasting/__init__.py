"""From options to columns of forecasts: presets, groups, chunks, reconciliation, backtests, files.

To add a preset or an option, change `presets` or `options`.
Nothing here imports the forecaster: it is handed the options and the panel.
"""
