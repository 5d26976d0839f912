"""Several forecasts of every series of a panel, stacked into one."""
