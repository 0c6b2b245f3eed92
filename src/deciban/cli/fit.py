"""`deciban fit`: fit a model to a file, and report on it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

from deciban.cli import app as options
from deciban.cli.app import argument, column_families, command, flag, one_of, option, refuse_together
from deciban.cli.arguments import column_named, cost_of, ledger_key, open_model, pairs, prior_of
from deciban.cli.output import Terminal, check_target, is_model
from deciban.errors import UsageError
from deciban.read.paths import is_pattern

if TYPE_CHECKING:
    from deciban.read.source import Source

Rows = Annotated[str, argument("ROWS", "A file, a folder, a pattern of files in quotes, or - for stdin.")]
Target = Annotated[str | None, option("--output -o", "FILE", "The model file. Default: ROWS with the ending .deciban.")]
Column = Annotated[
    list[str] | None,
    option("--column", "NAME=KIND", "Kind of a column (gaussian, category, ignore, …). Repeatable.", column_families),
]
Block = Annotated[
    list[str] | None, option("--block", "A,B=STRUCTURE", "Columns that vary together: full, tied, … Repeatable.")
]
TextColumn = Annotated[list[str] | None, option("--text", "NAME", "A column of texts. Repeatable.")]
Ngrams = Annotated[
    str | None, option("--ngrams", "auto|N|M-N", "Texts: count runs of up to N words, or of M to N; auto: as it helps.")
]
Characters = Annotated[bool, flag("--characters", "Texts: count runs of characters within words (2-5, or --ngrams).")]
Stem = Annotated[str | None, option("--stem", "LANG", "Texts: count the stems of words, such as english, german.")]
StopWords = Annotated[str | None, option("--stop-words", "LANG", "Texts: leave out the frequent words of a language.")]
RULES = ("mean", "predictive", "map", "ml")
Rule = Annotated[
    str, option("--rule", "|".join(RULES), "How parameters are obtained from the posterior.", complete=one_of(*RULES))
]
Calibrate = Annotated[str, option("--calibrate", "auto|none|…", "Calibration, by leave-one-out scores of these rows.")]
NoLedger = Annotated[
    bool, flag("--no-ledger", "Keep no digests of the rows; unlearn then recognises fewer wrong rows.")
]
Like = Annotated[str | None, option("--like", "MODEL", "Use the choices of this model, so that both can be merged.")]
Note = Annotated[str | None, option("--note", "TEXT", "Text to keep in the model file.")]
Bins = Annotated[
    int | None, option("--bins", "N", "The label is a number: split it into N ranges, the classes.", min=2)
]
Category = Annotated[bool, flag("--label-is-category", "The label's numbers are names of classes, however many.")]
MOST_NUMBERS, MOST_FRACTIONS = 30, 10  # different numbers of a label, or such with fractions, that may be classes
IGNORE = {"ignore": "identifier", "ignored": "identifier"}  # words for the kind of a column that is not used


@command(
    "deciban fit tumours.csv --label diagnosis",
    "deciban fit tumours.csv --label diagnosis --column texture=log-gaussian --block radius,smoothness=diagonal -o t",
    "deciban fit languages -o languages.deciban",
    panel=options.LEARN,
)
def fit(
    terminal: Terminal,
    rows: Rows,
    label: options.Label = None,
    bins: Bins = None,
    label_is_category: Category = False,
    output: Target = None,
    force: options.Force = False,
    column: Column = None,
    block: Block = None,
    text: TextColumn = None,
    ngrams: Ngrams = None,
    characters: Characters = False,
    stem: Stem = None,
    stop_words: StopWords = None,
    prior: options.Prior = None,
    cost: options.Cost = None,
    rule: Rule = "mean",
    calibrate: Calibrate = "auto",
    no_ledger: NoLedger = False,
    key_file: options.KeyFile = None,
    like: Like = None,
    note: Note = None,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    engine: options.Engine = None,
    verbose: options.Verbose = False,
) -> None:
    """Fit a model to rows, and report what was learnt, how good it is, what may be wrong, and what to do next."""
    refuse_together(no_ledger=no_ledger, key_file=key_file)
    refuse_together(bins=bins, label_is_category=label_is_category)
    refuse_together(like=like, engine=engine)
    refuse_together(characters=characters, stem=stem)
    refuse_together(characters=characters, stop_words=stop_words)
    words = {"ngrams": ngrams, "characters": characters, "stem": stem, "stop_words": stop_words}
    given_options = {"column": column, "block": block, "text": text, "no_ledger": no_ledger, "bins": bins, **words}
    for name, given in given_options.items():
        refuse_together(like=like, **{name: given})
    from deciban.cli.figures import Report
    from deciban.cli.rows import engine_of, open_rows, report_skipped
    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.read.files import FirstRows

    source = open_rows(terminal, rows, read_as, skip_bad, several_passes=True)
    label_name = _label(source, label)
    target = _target(rows, output)
    check_target(target, [rows], force, is_model)
    if not label_is_category and like is None:
        _check_label(source, label_name, bins)
    kinds = _kinds(source, column or [], block or [], text or [])
    if any(words.values()) and like is None:
        kinds = _with_text_options(source, label_name, kinds or {}, words)
    if bins is not None:
        kinds = {**(kinds or {}), label_name: bins}
    if like is not None:
        clf = open_model(like, "GenerativeClassifier", key=ledger_key(key_file)).blank().learn(source, label_name)
    else:
        clf = GenerativeClassifier(
            rule=rule,  # type: ignore[arg-type]
            calibrate=None if calibrate == "none" else calibrate,
            ledger=False if no_ledger else ledger_key(key_file) or True,
            kinds=kinds,
        )
        with engine_of(terminal, engine):
            clf.fit(source, label_name)
    if prior:
        clf.prior = prior_of(prior, clf.stats_.classes)
        clf.log_prior()  # raises an error if the prior is wrong
    if cost:
        clf.cost = cost_of(cost, clf.stats_.classes)
        clf.cost_matrix()  # raises an error if the costs are wrong
    report_skipped(terminal, source)
    clf.save(target, note=note or f"fitted on {source.name}")
    if terminal.quiet and not terminal.json:
        return
    if engine is not None:
        source = FirstRows(source)  # figures are computed on the first rows, from which the choices were made
    with terminal.reporting(target):
        report = Report.of(clf, source, target, terminal.progress)
        if terminal.json:
            terminal.dump(report.to_dict())
        else:
            report.show(terminal, verbose)


def _target(rows: str, output: str | None) -> str:
    """The path of the model; the default name never replaces a file."""
    if output is not None:
        return output
    if rows == "-":
        raise UsageError("rows from stdin have no file name: name the model with -o.")
    if is_pattern(rows):
        raise UsageError(f"{rows!r} stands for several files: name the model with -o.")
    from deciban.cli.rows import stem

    target = f"{stem(rows)}.deciban"
    if os.path.exists(target):
        raise UsageError(f"{target!r} exists already. Replace it with -o {target}, or choose another name with -o.")
    return target


def _label(source: Source, wanted: str | None) -> str:
    """The label column: as given; of a folder, the name of each text's folder."""
    from deciban.read.mail import MailSource
    from deciban.read.texts import LABEL, FolderSource

    if wanted is None:
        if isinstance(source, FolderSource | MailSource) and LABEL in source.columns:
            return LABEL
        columns = ", ".join(source.columns)
        raise UsageError(f"which column of {source.name} holds the class? Name it with --label. Columns: {columns}.")
    return column_named(wanted, source.columns, source.name)


def _check_label(source: Source, label: str, bins: int | None) -> None:
    """Refuse a numeric label with very many different values, unless it is split into ranges."""
    import numpy as np

    from deciban.read.arrow import arrow_column, floats
    from deciban.read.columns import Column

    other: list[str] = []
    table = next(source.batches())
    column = arrow_column(table, source.columns.index(label))
    numbers = np.unique(floats(column, Column(label, "number", ""), lambda row, value: other.append(value)))
    numbers = numbers[~np.isnan(numbers)]
    if bins is not None:
        if other:
            raise UsageError(f"--bins splits a label of numbers, and column {label!r} holds {other[0]!r}.")
        return
    most = MOST_NUMBERS if (numbers == np.round(numbers)).all() else MOST_FRACTIONS
    if not other and len(numbers) > most:
        raise UsageError(
            f"column {label!r} holds {len(numbers):,} different numbers, each of which would be a class. Split them "
            "into ranges with --bins 3; or, if they are names of classes, add --label-is-category."
        )


def _kinds(source: Source, columns: list[str], blocks: list[str], texts: list[str]) -> dict[Any, Any] | None:
    """The kinds that --column, --block and --text give to columns."""
    kinds: dict[Any, str] = {}
    option_of: dict[str, str] = {}

    def take(name: str, option: str) -> str:
        if name in option_of:
            raise UsageError(f"column {name!r} is named by {option_of[name]} and by {option}. Name it once.")
        option_of[name] = option
        return column_named(name, source.columns, source.name)

    for name, kind in pairs(columns, "--column", "age=gaussian"):
        kinds[take(name, "--column")] = IGNORE.get(kind.lower(), kind)
    for names, structure in pairs(blocks, "--block", "'length,width=full'"):
        kinds[tuple(take(name.strip(), "--block") for name in names.split(","))] = structure
    for name in texts:
        kinds[take(name, "--text")] = "text"
    return kinds or None


def _with_text_options(source: Source, label: str, kinds: dict[Any, Any], given: dict[str, Any]) -> dict[Any, Any]:
    """The kinds of columns, with a family of these options for each column of texts."""
    from deciban.read.schema import Schema
    from deciban.text import Text

    names = [name for name, kind in kinds.items() if kind == "text"]
    if not names:
        declared = [part for name in kinds for part in (name if isinstance(name, tuple) else (name,))]
        found = Schema.infer(next(source.batches()), label).columns
        names = [column.name for column in found if column.kind == "text" and column.name not in declared]
    if not names:
        option = next(name for name, value in given.items() if value).replace("_", "-")
        raise UsageError(
            f"--{option} is for texts, and no column of {source.name} was found to be one. Use --text NAME."
        )
    runs = _ngrams(given["ngrams"], (2, 5) if given["characters"] else (1, 1))
    wanted: dict[str, Any] = {"ngrams": runs, "stem": given["stem"], "stop_words": given["stop_words"]}
    family = Text(unit="char_wb" if given["characters"] else "word", **wanted)
    return {**kinds, **dict.fromkeys(names, family)}


def _ngrams(given: str | None, usual: tuple[int, int]) -> tuple[int, int] | str:
    """The lengths of runs that --ngrams asks for: auto, N or M-N."""
    if given is None or given == "auto":
        return given or usual
    first, dash, last = given.partition("-")
    try:
        return (int(first), int(last)) if dash else (1, int(first))
    except ValueError:
        raise UsageError(f"--ngrams {given!r} is neither auto, nor a number N, nor a range M-N such as 1-2.") from None
