"""Frames of clusters, through Fugue: rows to groups, groups to answers, groups to frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rbfdiffnet.adapters.clusters.groups import (
    Group,
    Key,
    Pending,
    Request,
    answer_questions,
    choose_rows,
    find_cuts,
    find_row_groups,
    find_split,
    is_learned_from,
)
from rbfdiffnet.models.sampled import Digests, hash_names
from rbfdiffnet.panel.frames import ColumnNames
from rbfdiffnet.support.arrays import Mask

try:
    import cloudpickle
    import fugue.api as fa
    import pyarrow as pa
    from fugue import make_execution_engine
    from triad import Schema
except ImportError as error:
    missing: ImportError | None = error
else:
    missing = None

GROUP, AHEAD = "__rbfdiffnet_group", "__rbfdiffnet_ahead"
_MOST_SPLIT = 0.1  # share of series that may lie on several partitions, if rows are to stay there
_FEWEST_TO_STAY = 50  # series in a partition, on average: each has its price
_STATE = f"{GROUP}:long,state:bytes,question:bytes"

Worker = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Cluster:
    """A Fugue engine, and how the frames on it look.

    ``keys`` is the schema of ids and dates as they were given, ``schema`` that of the frame as the
    groups get it. The groups are spread over ``num_partitions`` tasks, by default one each.
    """

    engine: Any
    columns: ColumnNames
    schema: Any
    keys: Any
    num_partitions: int | None

    @classmethod
    def of(cls, df: Any, engine: Any, columns: ColumnNames, num_partitions: int | None) -> Cluster:
        """Return the cluster that a frame lies on, or the one asked for."""
        if missing is not None:
            raise ImportError(
                f"Clusters need further packages ({missing}): pip install "
                "'rbfdiffnet[distributed]'."
            )
        engine = make_execution_engine(engine, infer_by=[df])
        given = fa.get_schema(df)
        for name in (columns.id, columns.time, columns.target):
            if name not in given:
                raise ValueError(f"There is no column {name!r}; the frame has {given.names}.")
        keys = given.extract([columns.id, columns.time])
        fields = [(f.name, _plain_type(f.type, f.name in keys)) for f in given.fields]
        return cls(engine, columns, Schema(fields), keys, num_partitions)

    def hash_series(self, df: Any) -> list[Digests]:
        """Return the hashes of the series of each partition."""
        found = self._map(df, _make_hasher(self.columns.id), "hashes:bytes")
        return [np.frombuffer(bytes(own), np.uint64) for own in fa.as_pandas(found)["hashes"]]

    def can_stay(self, df: Any, parts: Sequence[Digests]) -> bool:
        """Tell whether rows can stay where they are, given the hashes of each partition.

        Few series lie on several partitions, and there are enough partitions for all workers, but
        not too many. Only those of Dask are the same ones whenever they are asked for.
        """
        if self.num_partitions is not None or not type(df).__module__.startswith("dask"):
            return False
        hashes, split = find_split(parts)
        n_parts = sum(own.size > 0 for own in parts)
        enough = n_parts >= self.engine.get_current_parallelism()
        few = split.size <= _MOST_SPLIT * hashes.size
        return bool(enough and few and hashes.size >= _FEWEST_TO_STAY * n_parts)

    def run_in_place(
        self, df: Any, request: Request, names: Sequence[str], split: Digests, size: int
    ) -> Any:
        """Return the frame that is asked for, made partition by partition.

        Series that are split between partitions come together in groups of at most so many.
        """
        id_col, own, tables = self.columns.id, self.schema.names, self._tables(names)
        numbers = [f.name for f in self.schema.fields if pa.types.is_floating(f.type)]

        def is_split(hashes: Digests) -> Mask:
            return np.isin(hashes, split)

        def choosing(df: pd.DataFrame) -> pd.DataFrame:
            return pd.DataFrame(df.loc[choose_rows(df[id_col], is_split), own])

        def forecasting(df: pd.DataFrame) -> pd.DataFrame:
            df = df.loc[~choose_rows(df[id_col], is_split), own]
            floats = {name: df[name].to_numpy("float64", na_value=np.nan) for name in numbers}
            return Group(_plain(df.assign(**floats)), None).results(request)[0]

        frame = self._map(df, forecasting, tables)
        if split.size:
            groups = self.make_groups(self._map(df, choosing, self.schema), None, split, size)
            more = self._map(groups, _make_finisher(request, 0), tables)
            frame = fa.union(frame, more, distinct=False, engine=self.engine, as_fugue=True)
        return fa.get_native_as_df(frame)

    def make_groups(self, df: Any, X_df: Any, hashes: Digests, size: int) -> Any:
        """Return a frame with a row for each group of at most so many series; None for none."""
        if not hashes.size:
            return None
        id_col, names, cuts = self.columns.id, self.schema.names, find_cuts(hashes, size)
        marked = self.schema + f"{GROUP}:long,{AHEAD}:bool"
        rows = self._map(df, _make_marker(id_col, names, cuts, ahead=False), marked)
        future = None
        if X_df is not None:
            future = fa.get_column_names(X_df)
            for name in future:
                if name not in names:
                    raise ValueError(
                        f"X_df has a column {name!r} that was not there in training; leave it out."
                    )
            more = self._map(X_df, _make_marker(id_col, names, cuts, ahead=True), marked)
            rows = fa.union(rows, more, distinct=False, engine=self.engine, as_fugue=True)
        number = self.num_partitions or cuts.size + 1
        spread = {"by": [GROUP], "num": number, "algo": "hash"}
        return self._map(rows, _make_packer(names, future), _STATE, spread)

    def find_rows(self, df: Any, limit: int) -> pd.DataFrame:
        """Return the rows of the series that are learned from."""
        id_col, names = self.columns.id, self.schema.names

        def choosing(df: pd.DataFrame) -> pd.DataFrame:
            return pd.DataFrame(df.loc[is_learned_from(df[id_col], limit), names])

        found: pd.DataFrame = _plain(fa.as_pandas(self._map(df, choosing, self.schema)))
        return found

    def answer_all(self, groups: Any, request: Request) -> Any:
        """Return the groups with answers to all questions, and with their results."""
        answers: dict[Key, Any] | None = {}
        before: Any = None
        while answers is not None:
            groups = self._map(groups, _make_advancer(request, answers), _STATE)
            groups = fa.persist(groups, engine=self.engine, as_fugue=True)
            asked = fa.select_columns(groups, [GROUP, "question"], as_fugue=True)
            table = fa.as_pandas(asked).sort_values(GROUP)
            if hasattr(before, "unpersist"):  # Spark keeps what nobody refers to
                before.unpersist()
            before = groups.native
            groups = self._forget_plan(groups)
            questions = [cloudpickle.loads(bytes(question)) for question in table["question"]]
            answers = answer_questions(questions)
        return groups

    def collect(
        self, groups: Any, request: Request, names: Sequence[str], with_report: bool
    ) -> tuple[Any, Any]:
        """Return the frame that is asked for, and the report if that is asked for, too.

        ``names`` are the columns of the frame after ids and dates.
        """
        tables = self._tables(names)
        words = self.keys.extract([self.columns.id]) + "problem:str,action:str"
        if groups is None:
            nothing = [self.engine.to_df([], kind) for kind in (tables, words)]
            return fa.get_native_as_df(nothing[0]), fa.get_native_as_df(nothing[1])
        if with_report and request.independent:
            groups = self._map(groups, _make_advancer(request, {}), _STATE)
            groups = fa.persist(groups, engine=self.engine, as_fugue=True)
        frame = fa.get_native_as_df(self._map(groups, _make_finisher(request, 0), tables))
        if not with_report:
            return frame, None
        return frame, fa.get_native_as_df(self._map(groups, _make_finisher(request, 1), words))

    def _tables(self, names: Sequence[str]) -> Any:
        """Return the schema of what is asked for: ids, dates and columns with these names."""
        time = self.keys[self.columns.time].type
        values = [(name, time if name == "cutoff" else pa.float64()) for name in names]
        return self.keys + Schema(values)

    def _forget_plan(self, df: Any) -> Any:
        """Return a frame that knows where its rows are, not how they were made.

        A plan of Spark describes all steps before, twice each, so its text doubles with every one.
        """
        native = df.native
        if not hasattr(native, "_jdf"):
            return df
        session = native.sparkSession
        rows, schema = native._jdf.toJavaRDD(), native._jdf.schema()
        return self.engine.to_df(
            type(native)(session._jsparkSession.createDataFrame(rows, schema), session)
        )

    def _map(self, df: Any, function: Worker, schema: Any, spread: Any = None) -> Any:
        """Send partitions through a function; with a way to spread them, each group by itself."""
        return fa.transform(
            df, function, schema=schema, partition=spread, engine=self.engine, as_fugue=True
        )


def _plain_type(kind: pa.DataType, is_key: bool) -> pa.DataType:
    """Turn numbers into floats, since one of the frames may lack them, and days into times."""
    if is_key:
        return pa.timestamp("us") if pa.types.is_date(kind) else kind
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if number or pa.types.is_boolean(kind):
        return pa.float64()
    return kind


def _make_hasher(id_col: str) -> Worker:
    def hashing(df: pd.DataFrame) -> pd.DataFrame:
        found = np.unique(hash_names(df[id_col].dropna().unique()))
        return pd.DataFrame({"hashes": [found.tobytes()]})

    return hashing


def _make_marker(id_col: str, names: Sequence[str], cuts: Digests, *, ahead: bool) -> Worker:
    def marking(df: pd.DataFrame) -> pd.DataFrame:
        group = find_row_groups(df[id_col], cuts)
        whole: dict[str, Any] = {name: df.get(name, np.nan) for name in names}
        return pd.DataFrame({**whole, GROUP: group, AHEAD: ahead}, index=df.index)

    return marking


def _make_packer(names: Sequence[str], future: Sequence[str] | None) -> Worker:
    def packing(df: pd.DataFrame) -> pd.DataFrame:
        ahead = df[AHEAD].to_numpy(dtype=bool)
        frame = _plain(df[list(names)])
        later = None if future is None else frame.loc[ahead, list(future)].reset_index(drop=True)
        group = Group(frame[~ahead].reset_index(drop=True), later)
        return _make_state(df[GROUP].iloc[0], group, None)

    return packing


def _make_advancer(request: Request, answers: Mapping[Key, Any]) -> Worker:
    def advancing(df: pd.DataFrame) -> pd.DataFrame:
        states = []
        for number, state in zip(df[GROUP], df["state"], strict=True):
            group, question = _load_group(state).advance(request, answers)
            if isinstance(question, Pending) and number > 0:
                # How to combine is the same everywhere, and may be long.
                question = Pending(question.key, question.contribution, None)
            states.append(_make_state(number, group, question))
        return pd.concat(states)

    return advancing


def _make_finisher(request: Request, which: int) -> Worker:
    def finishing(df: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([_load_group(state).results(request)[which] for state in df["state"]])

    return finishing


def _load_group(state: Any) -> Group:
    return cloudpickle.loads(bytes(state))  # type: ignore[no-any-return]


def _make_state(number: int, group: Group, question: Any) -> pd.DataFrame:
    packed, asked = (bytes(cloudpickle.dumps(value)) for value in (group, question))
    return pd.DataFrame({GROUP: [number], "state": [packed], "question": [asked]})


def _plain(df: pd.DataFrame) -> pd.DataFrame:
    """Return columns as a frame of one machine has them, whatever the engine makes of them."""
    plain = {}
    for name, column in df.items():
        if pd.api.types.is_string_dtype(column) and not isinstance(column.dtype, np.dtype):
            column = column.astype(object).where(column.notna(), None)
        elif pd.api.types.is_integer_dtype(column):
            column = column.astype("int64")
        elif pd.api.types.is_float_dtype(column):
            column = pd.Series(column.to_numpy("float64", na_value=np.nan), column.index)
        plain[name] = column
    return pd.DataFrame(plain)
