"""`deciban predict`, `sample` and `explain`: answers to rows, rows drawn from a model, and the evidence of features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Annotated, Any

from deciban.cli import app as options
from deciban.cli.app import classes, command, flag, option, refuse_together
from deciban.cli.arguments import class_named, cost_of, open_model, prior_of
from deciban.cli.output import Terminal, begins_like, check_target, has_columns, write_file
from deciban.cli.tables import DIGITS, beside, format_of, rounded, write_tables
from deciban.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.evidence.explanation import Explanation
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
FIRST_ROWS = 5  # explained if --row is not given
Which = Annotated[str | None, option("--row -r", "N[,N…]", "Rows to explain, counted from 1. Default: the first five.")]
Over = Annotated[str | None, option("--over", "CLASS", "The class that the evidence is for.", complete=classes)]
Against = Annotated[str | None, option("--against", "CLASS", "The class to compare with.", complete=classes)]
Chain = Annotated[bool, flag("--chain", "Split a block of correlated columns: each given those before it.")]
Svg = Annotated[str | None, option("--svg", "FILE", "Draw the first of these rows.")]
Html = Annotated[str | None, option("--html", "FILE", "Write a page with a table for each row.")]
Most = Annotated[int, option("--most", "N", "Largest number of features per row.", min=1)]


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

    With saved clusters or topics: the cluster of each row, or the shares of all topics in each text. A .txt file is one
    text a line, unless it is a table or the model learnt longer texts; --read-as text or lines decides.
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
    from deciban.cli.other_models import saved_answers
    from deciban.cli.rows import open_rows, report_skipped

    wrong = next((name for name, value in options.items() if value), None)
    if wrong is not None:
        raise UsageError(f"--{wrong} is for classes, and {path} holds a {type(saved).__name__}.")
    read_as, skip_bad, text, append = reading
    texts = None if hasattr(saved, "n_components_") else text or ""
    source = open_rows(terminal, rows, read_as, skip_bad, texts=texts)
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


# -- explain -----------------------------------------------------------------------------------------------------------
@command(
    "deciban explain tumours.deciban new.csv --row 2",
    "deciban explain tumours.deciban new.csv --row 4 --over malignant --svg why.svg",
    panel=options.ASK,
)
def explain(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    row: Which = None,
    over: Over = None,
    against: Against = None,
    prior: options.Prior = None,
    unit: options.Unit = "decibans",
    chain: Chain = False,
    most: Most = 20,
    svg: Svg = None,
    html: Html = None,
    force: options.Force = False,
    read_as: options.ReadAs = None,
) -> None:
    """Show the evidence of each feature, the prior and the calibration; their sum is the answer, exactly."""
    refuse_together(json=terminal.json, svg=svg, html=html)
    check_target(svg, [model, rows], force, begins_like("matplotlib", "PNG", "%PDF"))
    check_target(html, [model, rows], force, begins_like("deciban"))
    if against is not None and over is None:
        raise UsageError("--against names the class to compare with: name the other one with --over.")
    if unit != "decibans" and not terminal.json:
        raise UsageError(f"--unit {unit}: bars are in decibans. Other units need --json.")
    wanted = _row_numbers(row)
    clf = open_model(model, "GenerativeClassifier")
    import numpy as np

    from deciban.cli.rows import open_rows

    source = open_rows(terminal, rows, read_as, clf=clf, gaps=True)
    numbers, typed = _find_rows(source, clf, wanted)
    classes = clf.stats_.classes
    pair = [None if name is None else class_named(name, classes) for name in (over, against)]
    if pair[0] is not None and pair[1] is None and len(classes) == 2:
        pair[1] = next(name for name in classes if name != pair[0])
    explanation = clf.explain(typed, *pair, prior=prior_of(prior, classes), chain=chain)
    explanation.rows = np.array(numbers)
    if svg is not None:
        from deciban.cli.figures import draw
        from deciban.plots import evidence_bars

        draw(svg, lambda ax: evidence_bars(explanation, 0, most=most, ax=ax))
        terminal.note(f"{svg}: row {numbers[0]}")
    elif html is not None:
        page = f"<!doctype html><meta charset='utf-8'><title>deciban explain</title>{explanation._repr_html_()}\n"
        write_file(html, page.encode())
        terminal.note(f"{html}: {len(explanation)} rows")
    elif terminal.json:
        terminal.dump(explanation.to_dict(unit))
    else:
        decided = clf.predict_proba(typed, prior=prior_of(prior, classes))
        for at in range(len(explanation)):
            terminal.say(_headline(explanation, at, classes, decided[at]), "bold")
            terminal.say(_legend(explanation, at))
            _show(terminal, explanation[at], most)
            if at + 1 < len(explanation):
                terminal.say()


def _headline(explanation: Explanation, at: int, classes: Sequence[Any], probabilities: Array) -> str:
    """The prediction of a row and its probability."""
    from deciban.evidence.explanation import probability_text, short

    best = int(probabilities.argmax())
    p = float(probabilities[best])
    odds = float("inf") if p >= 1 else log(p / (1 - p))
    return f'row {explanation.rows[at]}: predicted "{short(classes[best], 40)}", probability {probability_text(odds)}'


def _legend(explanation: Explanation, at: int) -> str:
    """What the signs mean."""
    from deciban.evidence.explanation import short

    over, against = (short(side, 30) for side in explanation.sides[at])
    return f'+ is evidence for "{over}", − for "{against}"; 10 dban are odds of 10 to 1'


def _find_rows(source: Source, clf: GenerativeClassifier, wanted: list[int] | None) -> tuple[list[int], TypedTable]:
    """The numbers of the wanted rows, counted from 1, and the rows; read until the last of them."""
    from deciban.cli.rows import typed_batches
    from deciban.read.tables import stacked

    last = FIRST_ROWS if wanted is None else wanted[-1]
    numbers: list[int] = []
    found, seen = [], 0
    for batch in typed_batches(source, clf):
        seen = batch.start + len(batch.typed)
        inside = [at for at in wanted or range(1, last + 1) if batch.start < at <= seen]
        if inside:
            found.append(batch.typed.take([at - 1 - batch.start for at in inside]))
            numbers += inside
        if seen >= last:
            break
    if wanted is not None and seen < last:
        raise UsageError(f"--row {last}: {source.name} has {seen:,} rows.")
    return numbers, stacked(found)


def _row_numbers(text: str | None) -> list[int] | None:
    """The numbers of 3 or 3,7,9 in order."""
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise UsageError(f"--row {text!r} is not the number of a row, counted from 1, or several such as 3,7.")
    return sorted(set(numbers))


def _show(terminal: Terminal, explanation: Explanation, most: int) -> None:
    """Print bars: red for evidence against, green for evidence for."""
    from rich.text import Text

    for line in explanation.text(most).split("\n"):
        text = Text(line)
        text.highlight_regex("█+", "red" if "−" in line.split("█")[0] else "green")
        if line.startswith(("evidence", "prior", "posterior", "row ")):
            text.stylize("bold")
        terminal.say(text)
