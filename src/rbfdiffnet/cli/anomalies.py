"""``rbfdiffnet anomalies``: past values outside of what was forecast one step before them."""

from __future__ import annotations

import argparse

import pandas as pd

from rbfdiffnet.cli import output
from rbfdiffnet.cli.run import as_command_error, describe_problems, start_job
from rbfdiffnet.support.text import format_frame

_MOST_SHOWN = 20  # anomalies, those with the largest scores


def run(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    from rbfdiffnet import RBFDiffNet

    output.check_outputs(arguments)
    with start_job(arguments) as job:
        data, console = job.data, job.console
        job.progress.update("Judging")
        with as_command_error(data.origins):
            model = RBFDiffNet(
                data.freq,
                season_length=job.seasons,
                lower=arguments.lower,
                upper=arguments.upper,
                n_jobs=arguments.jobs,
                hierarchy=arguments.group or None,
            )
            found = model.detect_anomalies(data.frame(), arguments.level, arguments.last)
    for line in describe_problems(model.notes_):
        console.warn(line)
    anomalies = found[found["anomaly"]]
    if arguments.document:
        rows = anomalies.drop(columns="anomaly")
        facts = {"level": arguments.level, "judged": len(found), "anomalies": rows}
        output.print_document(job, "anomalies", **facts, report=model.notes_)
    else:
        print(_summarize(found, anomalies))
    problems = []
    if arguments.out:
        problems = output.write_all(
            lambda: output.write_frame(arguments.out, found, raw_ids=arguments.raw_ids)
        )
        output.note_formulas(job, found)
    output.finish(console, problems, arguments.out)


def _summarize(found: pd.DataFrame, anomalies: pd.DataFrame) -> str:
    """Say how many values are anomalies, and show the largest."""
    text = f"{len(anomalies):,} of {len(found):,} values lie outside of what was forecast"
    if not len(anomalies):
        return text
    order = anomalies["score"].abs().sort_values(ascending=False, kind="stable").index
    shown = anomalies.loc[order[:_MOST_SHOWN]].drop(columns="anomaly").reset_index(drop=True)
    return f"{text}; the largest:\n\n{format_frame(shown)}"
