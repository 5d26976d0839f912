"""The default model: several forecasts of a panel, mixed by how well they did at its end.

`members` lists the ways to forecast, `mixing` weighs them, and `model` is what the pipeline sees.
To add a member, write a function of `Histories` and add it to `MEMBERS`. Nothing here knows frames.
"""
