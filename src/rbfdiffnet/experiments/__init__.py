"""The paper's two experiments: one-step prediction of the logistic map, and forecasts of M5.

`logistic` and `m5` are the protocols, `runner` runs their tasks and keeps the results,
`results` and `report` set them beside the paper's numbers. Another model goes into
``LOGISTIC_MODELS`` or ``M5_MODELS``. Nothing here imports the command line.
"""
