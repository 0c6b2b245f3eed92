"""`deciban predict` and `deciban sample`: answers to rows, and rows drawn from the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from deciban.cli import command as options
from deciban.cli.arguments import cost_of, open_model, prior_of
from deciban.cli.command import command, flag, option, refuse_together
from deciban.cli.output import Terminal, check_target, has_columns
from deciban.cli.tables import DIGITS, beside, format_of, rounded, write_tables
from deciban.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.model.prediction_sets import Conformity
    from deciban.read.source import Source
    from deciban.read.tables import TypedTable
    from deciban.statistics import Array

Coverage = Annotated[
    float | None,
    option("--coverage", "P", "Add the set of classes that contains the true one with probability P; needs --learnt."),
]
Learnt = Annotated[str | None, option("--learnt", "FILE", "The rows that the model was fitted on, for --coverage.")]
ByClass = Annotated[bool, flag("--by-class", "Sets cover the rows of each class with probability P.")]
Unsure = Annotated[float | None, option("--unsure", "P", "No prediction where its probability is below P.")]
SEPARATOR = " | "  # between the classes of a set
ANSWERS = ("prediction", "probability", "evidence")  # columns of every answer
TextColumn = Annotated[str | None, option("--text", "COLUMN", "With topics: the column of texts.")]
Count = Annotated[int, option("--rows -n", "N", "Number of rows.", min=1)]


# -- predict -----------------------------------------------------------------------------------------------------------
@command(
    "deciban predict tumours.deciban new.csv",
    "deciban predict tumours.deciban new.csv --prior malignant=.01 --append -o answers.parquet",
    "deciban predict languages.deciban --unsure .9 < mystery.txt",
    "deciban predict tumours.deciban new.csv --coverage .95 --learnt tumours.csv",
    panel=options.ASK,
)
def predict(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    prior: options.Prior = None,
    cost: options.Cost = None,
    unsure: Unsure = None,
    coverage: Coverage = None,
    learnt: Learnt = None,
    by_class: ByClass = False,
    unit: options.Unit = "decibans",
    text: TextColumn = None,
    append: options.Append = False,
    output: options.Output = None,
    format: options.Format = None,
    force: options.Force = False,
    spreadsheet_safe: options.SpreadsheetSafe = False,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    engine: options.Engine = None,
) -> None:
    """Classify rows: prediction, probability, evidence over the runner-up, and the probability of every class.

    With saved clusters or topics: the cluster of each row, or the shares of all topics in each text.
    """
    kind = format_of(output, format, terminal.json)
    check_target(output, [model, rows], force, _is_answer)
    clf = open_model(model, "GenerativeClassifier", "MixtureModel", "TopicModel", "PLSA")
    from deciban.cli.rows import engine_of, open_rows, report_skipped

    if not hasattr(clf, "model_"):
        given = {"prior": prior, "cost": cost, "unsure": unsure, "coverage": coverage, "learnt": learnt}
        _answer_saved(
            terminal, clf, model, rows, given, (read_as, skip_bad, text, append), (output, kind, spreadsheet_safe)
        )
        return
    if text is not None:
        raise UsageError("--text is for topics: the columns of this model are known.")
    from deciban.evidence.scores import UNITS

    if unit not in UNITS:
        raise UsageError(f"--unit {unit!r} is not one of {', '.join(UNITS)}.")
    if unsure is not None and not 0 <= unsure <= 1:
        raise UsageError(f"--unsure {unsure:g} is no probability. Give a number between 0 and 1, such as .9.")
    sets = _sets(terminal, clf, coverage, learnt, by_class)
    classes = clf.stats_.classes
    log_prior, costs = clf.log_prior(prior_of(prior, classes)), clf.cost_matrix(cost_of(cost, classes))
    answering = Answering(clf, log_prior, costs, unsure, unit, None if kind == "parquet" else DIGITS, sets)
    source = open_rows(terminal, rows, read_as, skip_bad, clf=clf, gaps=True)
    refuse_together(coverage=coverage, engine=engine)
    with engine_of(terminal, engine) as opened:
        shared = None if opened is None else opened.over_parts(PartAnswers(answering, append, source.absent), source)
        answers = _answers(source, answering, append) if shared is None else _gathered(shared, source)
        write_tables(answers, output, kind, spreadsheet_safe)
    report_skipped(terminal, source)
    if sets is not None:
        terminal.note(f"deciban: {sets.summary()}")


def _answer_saved(
    terminal: Terminal,
    saved: Any,
    path: str,
    rows: str,
    options: dict[str, Any],
    reading: tuple[str | None, bool, str | None, bool],
    writing: tuple[str | None, str, bool],
) -> None:
    """Write the answers of clusters or topics."""
    from deciban.cli.rows import open_rows, report_skipped
    from deciban.cli.saved_models import saved_answers

    wrong = next((name for name, value in options.items() if value), None)
    if wrong is not None:
        raise UsageError(f"--{wrong} is for classes, and {path} holds a {type(saved).__name__}.")
    read_as, skip_bad, text, append = reading
    source = open_rows(terminal, rows, read_as, skip_bad)
    write_tables(saved_answers(saved, path, source, text, append), *writing)
    report_skipped(terminal, source)


def _is_answer(path: str) -> bool:
    """Whether a file is an earlier answer of this command."""
    return any(has_columns(*names)(path) for names in (ANSWERS, ("cluster", "outlier"), ("topic", "share")))


class Sets:
    """Prediction sets of batches, and how many had which size."""

    def __init__(self, conformity: Conformity, coverage: float) -> None:
        self.conformity, self.coverage = conformity, coverage
        self.rows = self.empty = self.single = 0
        self.always: tuple[Any, ...] = ()

    def of(self, rows: TypedTable) -> list[str]:
        """The classes of each row's set, the most plausible first."""
        from deciban.model.prediction_sets import prediction_sets

        found = prediction_sets(self.conformity, rows, self.coverage)
        self.rows, self.always = self.rows + len(found), found.always
        self.empty, self.single = self.empty + found.empty, self.single + int((found.size == 1).sum())
        return [SEPARATOR.join(map(str, each)) for each in found]

    def summary(self) -> str:
        """How many sets had which size."""
        several = self.rows - self.empty - self.single
        said = f"sets with coverage {self.coverage:g}: {self.single:,} of one class, {several:,} of several, "
        few = f"; in every set, because it has too few rows: {', '.join(map(str, self.always))}" if self.always else ""
        return f"{said}{self.empty:,} empty{few}"


def _sets(
    terminal: Terminal, clf: GenerativeClassifier, coverage: float | None, learnt: str | None, by_class: bool
) -> Sets | None:
    """Return the prediction sets that the options ask for; None without --coverage."""
    if coverage is None:
        if learnt is not None or by_class:
            raise UsageError("--learnt and --by-class are for sets of classes: add --coverage, such as --coverage .9.")
        return None
    if not 0 < coverage < 1:
        raise UsageError(f"--coverage {coverage:g} is no probability. Give a number between 0 and 1, such as .9.")
    if learnt is None:
        raise UsageError(
            "--coverage compares rows with those that the model was fitted on, which a model file does not hold. "
            "Name their file: --learnt FILE."
        )
    from deciban.cli.rows import label_column, label_values, open_rows, typed_whole

    source = open_rows(terminal, learnt, clf=clf)
    column = label_column(clf, source, None)
    typed, given = typed_whole(clf, source)
    return Sets(clf.conformity("cv+", by_class, learnt=(typed, label_values(clf, given, column))), coverage)


@dataclass(frozen=True, eq=False)
class Answering:
    """A classifier, and the options of its answers."""

    clf: GenerativeClassifier
    log_prior: Array  # (K,)
    cost: Array  # (K, K)
    unsure: float | None  # no prediction below this probability
    unit: str  # of the evidence
    digits: int | None  # significant digits; None for all
    sets: Sets | None = None  # computes prediction sets, if they are wanted

    def table(self, rows: TypedTable) -> pa.Table:
        """The answers: prediction, probability, evidence, then P(class) of each class."""
        import numpy as np
        import pyarrow as pa

        from deciban.evidence.decisions import decide, with_unsure
        from deciban.evidence.scores import convert, llr_over_runner_up, log_posterior

        likelihood = self.clf.log_likelihood(rows, constant=False)
        log_p = log_posterior(likelihood, self.log_prior)
        decided = decide(log_p, self.cost)
        evidence = convert(llr_over_runner_up(likelihood, decided, self.log_prior), self.unit)
        p = np.exp(log_p)
        undecided = None if self.unsure is None else with_unsure(log_p, decided, self.unsure, cost=self.cost)
        names = [str(name) for name in self.clf.stats_.classes]
        codes = pa.array(decided, pa.int32(), mask=undecided)
        columns = {
            "prediction": pa.DictionaryArray.from_arrays(codes, pa.array(names)),
            "probability": rounded(p[np.arange(len(p)), decided], self.digits),
            "evidence": rounded(evidence, self.digits),
        }
        if self.sets is not None:
            columns["set"] = pa.array(self.sets.of(rows), pa.string())
        return pa.table(columns | {f"P({name})": rounded(p[:, k], self.digits) for k, name in enumerate(names)})


def _answers(source: Source, answering: Answering, append: bool) -> Iterator[pa.Table]:
    """The answers batch by batch, behind the columns of the input if wanted."""
    from deciban.cli.rows import FILE, GivenDocuments, typed_batches
    from deciban.read.arrow import arrow_table

    for batch in typed_batches(source, answering.clf):
        with batch.typed.located():
            answers = answering.table(batch.typed)
        if append:
            given = arrow_table(batch.given)
            answers = beside(given.select([FILE]) if isinstance(source, GivenDocuments) else given, answers)
        yield answers


@dataclass(frozen=True, eq=False)
class PartAnswers:
    """Task of an engine: the answers to the rows of a part of the files."""

    answering: Answering
    append: bool
    absent: tuple[str, ...]  # columns that the files do not have

    def __call__(self, part: Any, task: Any) -> tuple[list[pa.Table], Any]:
        """Return the answers of each batch, and the rows that were skipped."""
        from deciban.errors import NoRowsError

        source = part.source()
        source.quiet, source.absent = True, self.absent
        try:
            return list(_answers(source, self.answering, self.append)), source.skipped
        except NoRowsError:
            return [], source.skipped


def _gathered(shared: Iterator[tuple[list[pa.Table], Any]], source: Source) -> Iterator[pa.Table]:
    """The answers of all parts in order; the rows that were skipped are counted in the source."""
    for tables, skipped in shared:
        source.skipped = source.skipped + skipped
        yield from tables


# -- sample ------------------------------------------------------------------------------------------------------------
@command("deciban sample tumours.deciban -n 5 --seed 1", panel=options.ASK)
def sample(
    terminal: Terminal,
    model: options.ModelFile,
    rows: Count = 10,
    prior: options.Prior = None,
    seed: options.Seed = None,
    output: options.Output = None,
    format: options.Format = None,
    force: options.Force = False,
    spreadsheet_safe: options.SpreadsheetSafe = False,
) -> None:
    """Draw rows from the model, with their classes: what it expects the data to look like."""
    kind = format_of(output, format, terminal.json)
    check_target(output, [model], force, has_columns())
    clf = open_model(model, "GenerativeClassifier", "MixtureModel")
    if hasattr(clf, "stats_"):
        drawn, labels = clf.sample(rows, random_state=seed, prior=prior_of(prior, clf.stats_.classes))
    else:
        drawn, labels = clf.sample(rows, random_state=seed)
    write_tables([_drawn_table(clf, drawn, labels)], output, kind, spreadsheet_safe)


def _drawn_table(clf: Any, drawn: Any, labels: Array) -> pa.Table:
    """Drawn rows with the columns in the model's order, then the class."""
    import pyarrow as pa
    import scipy.sparse as sp

    names = [str(name) for name in clf.columns_]
    cells = drawn.toarray() if sp.issparse(drawn) else drawn
    columns = {name: _column(cells[:, j]) for j, name in enumerate(names)}
    return pa.table(columns | {"class": [str(label) for label in labels.tolist()]})


def _column(values: Array) -> pa.Array:
    """Numbers rounded, names as they are."""
    import numpy as np
    import pyarrow as pa

    plain = values.tolist()
    if any(isinstance(value, str) for value in plain):
        return pa.array(plain)
    return pa.array(rounded(np.asarray(plain, dtype=float)))
