"""From options to columns of forecasts: presets, chunks, backtests, explanations, files of models.

To add a preset or an option, change `presets` or `options`.
Nothing here imports the forecaster: it is handed the options and the panel.
"""
