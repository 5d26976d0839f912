"""Search for inputs that break a promise.

For any input a public entry returns a sound result, or refuses it by an error that says what is
wrong (`claims`). Each target is a module with functions that hypothesis calls: `regressors`,
`forecaster`, `frames`, `odd_panels`, `agreement`, `model_files`, `data_files`, `commands`,
`arrays`, `reports`.
`targets` lists them, `run.py` tries thousands of cases, `guided.py` lets atheris look for cases
that reach code no case has reached before, and `test_fuzzing.py` tries a few of each.
"""
