"""Files of models, and what comes with the package."""

import os
import tempfile
from pathlib import Path

import pandas as pd

from attack_parts.registry import SETTINGS, Cases, Group, refused
from panels import make_panel
from rbfdiffnet import RBFDiffNet

GROUP = Group("models", "Files of models")
promise = GROUP.promise


@promise(
    "A model in which one bit has changed, or the end is missing, is refused by name",
    "SECURITY.md",
    "cut off at every byte, and a bit flipped in every byte",
)
def damaged_models(cases: Cases) -> None:
    from bits import check_model

    with cases("all"), tempfile.TemporaryDirectory() as folder:
        cases.add(check_model(Path(folder), 1) - 1)


@promise(
    "Bytes changed anywhere are refused, or forecasts are the very same",
    "SECURITY.md",
    "random edits of seven kinds of models",
)
def changed_bytes_of_models(cases: Cases) -> None:
    cases.fuzz("model files, bytes", 250)


@promise(
    "Loading executes nothing, whatever a file says",
    "SECURITY.md",
    "22 odd words under right digests, and a search of the source for what executes",
)
def hostile_words(cases: Cases) -> None:
    cases.tests(
        "test_security.py::test_nothing_in_the_source_executes_what_it_reads",
        "test_security.py::test_odd_words_in_a_model_are_refused",
        "test_security.py::test_words_that_nest_deeply_or_have_huge_numbers_are_refused",
        "test_security.py::test_a_version_that_is_no_number_is_refused",
    )


@promise(
    "Contents changed under right digests are refused or loaded, and take no forever",
    "SECURITY.md",
    "random changes of numbers, shapes and settings of seven kinds of models",
)
def hostile_contents(cases: Cases) -> None:
    cases.fuzz("model files, contents", 250)


@promise(
    "No pickle in a model file is ever read",
    "SECURITY.md",
    "arrays of objects with a trap",
)
def pickles(cases: Cases) -> None:
    cases.tests("forecasting/test_archive.py::test_objects_are_never_unpickled")


@promise(
    "Sizes are checked before memory is taken",
    "SECURITY.md",
    "small files that unpack to much, headers that lie, too many members, sizes that disagree",
)
def sizes_of_models(cases: Cases) -> None:
    cases.tests(
        "forecasting/test_archive.py::test_bombs_are_refused_before_they_unpack",
        "forecasting/test_archive.py::test_headers_that_lie_are_refused",
        "forecasting/test_archive.py::test_other_ways_of_packing_and_too_many_members_are_refused",
        "test_security.py::test_sizes_that_do_not_agree_are_refused",
        "test_security.py::test_long_settings_are_refused",
    )


@promise(
    "Loading writes nothing to the disk",
    "SECURITY.md",
    "names that lead out of the folder, absolute names and links in a model file",
)
def names_in_models(cases: Cases) -> None:
    cases.tests(
        "forecasting/test_archive.py::test_names_that_lead_elsewhere_are_refused",
        "forecasting/test_archive.py::test_links_are_not_followed",
    )


@promise(
    "A file of another format, without a digest or without an end is refused",
    "SECURITY.md",
    "older and newer formats, no digest, a pipe and a device",
)
def other_formats(cases: Cases) -> None:
    cases.tests(
        "forecasting/test_archive.py::test_a_model_without_its_digest_or_of_another_format_is_refused",
        "forecasting/test_archive.py::test_what_has_no_end_is_refused",
    )


@promise(
    "The weights that come with the package are checked by their digest, and hold no objects",
    "pretrained.md",
    "another digest; every array of the file",
)
def weights(cases: Cases) -> None:
    cases.tests(
        "pretrained/test_pretrained_network.py::test_damaged_weights_are_refused",
        "pretrained/test_pretrained_network.py::test_weights_are_small_and_hold_no_objects",
    )


@promise(
    "Whatever happens while a file is written, there is the old file or the new one, whole",
    "reliability.md",
    "`kill -9` at random moments while models, tables and reports are written",
)
def kills_while_writing(cases: Cases) -> None:
    from writes import check_writes

    with cases("all"), tempfile.TemporaryDirectory() as folder:
        cases.add(check_writes(Path(folder), 4, cases.seed)[0] - 1)


@promise(
    "A file that cannot be written is named with the remedy, and the old one stays",
    "reliability.md",
    "a limit of file sizes, no folder, a folder, a pipe, a device, a long name",
)
def disks(cases: Cases) -> None:
    import resource

    from children import finished, forked

    df = make_panel("ab", n=60)
    model = RBFDiffNet("D", preset="fast").fit(df)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        path.write_text("old")
        os.mkfifo(Path(folder, "pipe"))
        names = ("none/model.npz", ".", "pipe", "/dev/null", "x" * 300)
        for name in names:
            with cases(name[:20]):
                target = Path(folder, name)
                refused(lambda t=target: model.save(t), str(target), ";", kinds=OSError)
        with cases("too large"):

            def work():
                import signal

                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
                try:
                    model.save(path)
                except OSError as error:
                    return 0 if str(path) in str(error) and "ulimit" in str(error) else 3
                return 4

            assert finished(forked(work, Path(folder, "log"))) == 0
        with cases("the old file"):
            assert path.read_text() == "old"
            assert sorted(os.listdir(folder)) == ["log", "model.npz", "pipe"], os.listdir(folder)


@promise(
    "Files have the same bytes whenever they are written",
    "versions.md",
    "models of four settings and a report, written twice",
)
def bytes_of_files(cases: Cases) -> None:
    from rbfdiffnet.report import report_of

    df = make_panel("ab", n=60)
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder, "one"), Path(folder, "two")
        for name, parameters in SETTINGS.items():
            with cases(f"model, {name}"):
                for path in (one, two):
                    RBFDiffNet("D", **parameters).fit(df).save(path)
                assert one.read_bytes() == two.read_bytes()
        with cases("report"):
            for path in (one, two):
                report_of(RBFDiffNet("D", preset="fast").fit(df), path, df, 5)
            assert one.read_bytes() == two.read_bytes()


@promise(
    "Updates and files do not disturb each other: load, update, forecast is update, forecast",
    "nightly.md",
    "ten rows added by both ways, in four settings",
)
def updates_of_files(cases: Cases) -> None:
    df = make_panel("ab", n=70)
    first, newer = df.groupby("unique_id").head(60), df.groupby("unique_id").tail(10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        for name, parameters in SETTINGS.items():
            with cases(name):
                model = RBFDiffNet("D", **parameters).fit(first)
                model.save(path)
                loaded = RBFDiffNet.load(path)
                found = [m.update(newer).predict(5, level=[80]) for m in (model, loaded)]
                pd.testing.assert_frame_equal(*found, check_exact=True)


@promise(
    "Wheels and source archives have the same bytes when they are built again",
    "SECURITY.md",
    "both built twice from the same files, hours apart by the clock",
)
def wheels(cases: Cases) -> None:
    cases.tests("test_packages.py")
