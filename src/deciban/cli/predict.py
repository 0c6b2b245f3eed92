"""`deciban predict` and `deciban sample`: answers to rows, and rows drawn from the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from deciban.cli import command as options
from deciban.cli.arguments import cost_of, open_model, prior_of
from deciban.cli.command import command, option
from deciban.cli.output import check_target, has_columns
from deciban.cli.tables import DIGITS, beside, format_of, rounded, write_tables
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.read.source import Source
    from deciban.read.typed import TypedTable
    from deciban.statistics import Array

Unsure = Annotated[float | None, option("--unsure", "P", "No prediction where its probability is below P.")]
ANSWERS = ("prediction", "probability", "evidence")  # columns of every answer
Count = Annotated[int, option("--rows -n", "N", "Number of rows.", min=1)]


# -- predict -----------------------------------------------------------------------------------------------------------
@command(
    "deciban predict tumours.deciban new.csv",
    "deciban predict tumours.deciban new.csv --prior malignant=.01 --append -o answers.parquet",
    "deciban predict languages.deciban --unsure .9 < mystery.txt",
    panel=options.ASK,
)
def predict(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    prior: options.Prior = None,
    cost: options.Cost = None,
    unsure: Unsure = None,
    unit: options.Unit = "decibans",
    append: options.Append = False,
    output: options.Output = None,
    format: options.Format = None,
    force: options.Force = False,
    spreadsheet_safe: options.SpreadsheetSafe = False,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Classify rows: prediction, probability, evidence over the runner-up, and the probability of every class."""
    kind = format_of(output, format, terminal.json)
    check_target(output, [model, rows], force, has_columns(*ANSWERS))
    clf = open_model(model, "GenerativeClassifier")
    from deciban.cli.rows import open_rows, report_skipped
    from deciban.evidence.scores import UNITS

    if unit not in UNITS:
        raise UsageError(f"--unit {unit!r} is not one of {', '.join(UNITS)}.")
    if unsure is not None and not 0 <= unsure <= 1:
        raise UsageError(f"--unsure {unsure:g} is no probability. Give a number between 0 and 1, such as .9.")
    classes = clf.stats_.classes
    log_prior, costs = clf.log_prior(prior_of(prior, classes)), clf.cost_matrix(cost_of(cost, classes))
    answering = Answering(clf, log_prior, costs, unsure, unit, None if kind == "parquet" else DIGITS)
    source = open_rows(terminal, rows, read_as, skip_bad, clf=clf, gaps=True)
    write_tables(_answers(source, answering, append), output, kind, spreadsheet_safe)
    report_skipped(terminal, source)


@dataclass(frozen=True, eq=False)
class Answering:
    """A classifier, and how its answers are wanted."""

    clf: GenerativeClassifier
    log_prior: Array  # (K,)
    cost: Array  # (K, K)
    unsure: float | None  # no prediction below this probability
    unit: str  # of the evidence
    digits: int | None  # significant digits; None for all

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
    positions = clf.model_.positions if hasattr(clf, "model_") else [range(len(names))]
    cells = drawn.toarray() if sp.issparse(drawn) else drawn
    columns = {names[j]: _column(cells[:, at]) for at, j in enumerate(j for block in positions for j in block)}
    return pa.table({name: columns[name] for name in names} | {"class": [str(label) for label in labels.tolist()]})


def _column(values: Array) -> pa.Array:
    """Numbers rounded, names as they are."""
    import numpy as np
    import pyarrow as pa

    plain = values.tolist()
    if any(isinstance(value, str) for value in plain):
        return pa.array(plain)
    return pa.array(rounded(np.asarray(plain, dtype=float)))
