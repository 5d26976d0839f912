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
        data = job.data
        name = _choose_series(arguments, data)
        job.progress.update("Explaining")
        parts = _explain(job, name)
    if arguments.json:
        output.print_result(
            "explain",
            data,
            unique_id=name,
            step=arguments.step,
            **{key: output.frame_to_json(frame) for key, frame in parts.items()},
        )
        return
    name = one_line(name)
    if "members" in parts:
        print(f"\nThe stack's forecast of '{name}'")
        print(_write_table(parts["members"], ["term", "value", "weight", "contribution"]))
    if "inputs" in parts:
        print(f"\nThe pretrained network's forecast of '{name}'")
        print(_write_table(parts["inputs"], ["part", "term", "value", "weight", "contribution"]))
        print("\nIts exemplars, how much each counts, and what each alone would forecast")
        print(_write_exemplars(parts["inputs"]))
        return
    print(f"\nThe network of '{name}' alone")
    if _is_linear(parts["network"]):
        print("There was nothing nonlinear to learn: it is linear, its exemplars add nothing.")
    elif len(parts["equation"]):
        equation = one_line(_write_equation(parts["equation"]))
        print(f"Learned operator on the basis functions: {equation}")
    print(
        _write_table(
            parts["network"], ["part", "term", "value", "weight", "contribution", "nearest"]
        )
    )


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
    """Return tables for one step of one series: members, inputs, the network, its operator."""
    parts: dict[str, pd.DataFrame] = {}
    data, model = job.data, job.make_model()
    method = model.options.method
    if not method.learns_series_alone:
        found, parts["equation"] = job.explain(model, data.frame(), [name])
        parts[method.explains_by] = found
    if method.learns_series_alone or method.explains_by == "members":
        position = data.ids.index(name)
        frame = data.series.part(position, position + 1)
        parts["network"], parts["equation"] = job.explain(job.make_model("local"), frame, [name])
    for key in parts.keys() - {"equation"}:
        dates = parts[key]["ds"]
        rows = dates == dates.unique()[job.arguments.step - 1]
        parts[key] = parts[key][rows].reset_index(drop=True)
    return {key: parts[key] for key in ("members", "inputs", "network", "equation") if key in parts}


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
