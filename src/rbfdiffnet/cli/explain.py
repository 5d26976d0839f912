"""``rbfdiffnet explain``: show the terms that a forecast is the sum of."""

from __future__ import annotations

import argparse

import pandas as pd

from rbfdiffnet.cli import output
from rbfdiffnet.cli.run import Job, start_job
from rbfdiffnet.readers import Data
from rbfdiffnet.support.checks import CommandError
from rbfdiffnet.support.text import format_frame, format_number, one_line

_MOST_TERMS = 15  # of each table, the largest ones
_MOST_COEFFICIENTS = 8  # of the operator


def run(arguments: argparse.Namespace) -> None:
    """Carry out the command."""
    if arguments.step > arguments.horizon:
        raise CommandError(f"--step {arguments.step} is beyond --horizon {arguments.horizon}")
    with start_job(arguments) as job:
        name = _choose_series(arguments, job.shown)
        job.progress.update("Explaining")
        parts = _explain(job, name)
    if arguments.document:
        output.print_document(job, "explain", unique_id=name, step=arguments.step, **parts)
        return
    name = one_line(name)
    columns, terms = ["part", "term", "value", "weight", "contribution", "nearest"], parts["terms"]
    print(f"\nThe forecast of '{name}'")
    if "equation" not in parts:
        print(_write_table(terms, columns))
        if (terms["part"] == "exemplar").any():
            print("\nThe exemplars of the pretrained network that count most")
            print(_write_exemplars(terms))
        return
    if _is_linear(terms):
        print("There was nothing nonlinear to learn: it is linear, its exemplars add nothing.")
    elif len(parts["equation"]):
        equation = one_line(_write_equation(parts["equation"]))
        print(f"Learned operator on the basis functions: {equation}")
    print(_write_table(terms, columns))


def _choose_series(arguments: argparse.Namespace, data: Data) -> str:
    """Return the id of the series to explain."""
    if arguments.id is None and data.series.n_series == 1:
        return data.ids[0]
    if arguments.id in data.ids:
        return str(arguments.id)
    known = ", ".join(f"'{name}'" for name in data.ids[:8])
    more = ", ..." if data.series.n_series > 8 else ""
    what = "which series? Give --id" if arguments.id is None else f"no series '{arguments.id}'"
    raise CommandError(f"{what}; there are {known}{more}")


def _explain(job: Job, name: str) -> dict[str, pd.DataFrame]:
    """Return tables for one step of one series: terms, or those of its network and operator."""
    data, model = job.data, job.make_model()
    method, frame = model.options.method, data.frame()
    if method.learns_series_alone and data.groups is None:
        position = data.ids.index(name)
        frame = data.series.part(position, position + 1)
    parts = job.explain(model, frame, [name])
    dates = parts["terms"]["ds"]
    rows = dates == dates.unique()[job.arguments.step - 1]
    return {**parts, "terms": parts["terms"][rows].reset_index(drop=True)}


def _write_table(frame: pd.DataFrame, columns: list[str]) -> str:
    """Write the largest terms, the rest in one line, and their sum."""
    total = float(frame["contribution"].sum())
    tiny = 1e-9 * max(abs(total), float(frame["contribution"].abs().max()))
    sizes = frame["contribution"].abs().sort_values(ascending=False, kind="stable")
    order = sizes.index[sizes > tiny]
    shown = frame.loc[order[:_MOST_TERMS]]
    rest = total - float(shown["contribution"].sum())
    n_rest = len(order) - len(shown)
    last = [{"term": "forecast", "contribution": total}]
    if n_rest:
        last.insert(0, {"term": f"{n_rest} smaller terms", "contribution": rest})
    lines = pd.concat([shown[columns], pd.DataFrame(last)], ignore_index=True)
    keep = [c for c in columns if c in lines and (lines[c].notna() & (lines[c] != "")).any()]
    text = [c for c in keep if lines[c].dtype.kind == "O"]
    return format_frame(lines[keep].assign(**{c: lines[c].fillna("") for c in text}))


def _write_exemplars(frame: pd.DataFrame) -> str:
    """Write the exemplars of the pretrained network, whose forecasts mix to the network's."""
    own = frame[frame["part"] == "exemplar"]
    names = {"term": "exemplar", "activation": "gate", "value": "alone"}
    return format_frame(own[list(names)].rename(columns=names).reset_index(drop=True))


def _is_linear(network: pd.DataFrame) -> bool:
    """Tell whether the exemplars of a network add next to nothing."""
    sizes = network["contribution"].abs()
    exemplars = network["part"] == "exemplar"
    return bool(exemplars.any() and sizes[exemplars].sum() <= 1e-6 * sizes.sum())


def _write_equation(table: pd.DataFrame) -> str:
    """Write a differential operator, its largest coefficients first."""
    order = table["coefficient"].abs().sort_values(ascending=False, kind="stable").index
    terms = []
    for _, row in table.loc[order[:_MOST_COEFFICIENTS]].iterrows():
        power = "" if row["order"] == 1 else f"^{row['order']}"
        by = "" if row["order"] == 0 else f" d{power}/d({row['input']}){power}"
        terms.append(f"{format_number(row['coefficient'])}{by}")
    more = f" + {len(table) - _MOST_COEFFICIENTS} more" if len(table) > _MOST_COEFFICIENTS else ""
    return " + ".join(terms).replace("+ -", "- ") + more
