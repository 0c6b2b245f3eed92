"""`deciban inspect`, `report` and `export`: a model in the terminal, as a page, and as a query for a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from deciban.cli import app as options
from deciban.cli.app import argument, command, features, flag, option, refuse_together
from deciban.cli.arguments import calibration_state, choices_state, ledger_key, open_model, prior_of, unknown_name
from deciban.cli.output import Terminal, begins_like, check_target, has_columns, write_file, write_text
from deciban.cli.tables import format_of, write_tables

if TYPE_CHECKING:
    from deciban.model.explain import Parameter
    from deciban.model.ledger import Ledger
    from deciban.model.model import Model

Feature = Annotated[
    list[str] | None,
    option("--feature", "NAME", "Only parameters of this feature. Repeatable.", complete=features),
]
Most = Annotated[int, option("--most", "N", "Largest number of parameters to print.", min=1)]
Level = Annotated[float, option("--level", None, "Level of the credible intervals.", min=0.01, max=0.999)]
Rows = Annotated[str | None, argument("[ROWS]", "Labelled rows to judge the model by: a file, a folder, or -.")]
Page = Annotated[str, option("--output -o", "FILE", "Write the page to FILE.")]
LeaveOneOut = Annotated[
    bool,
    flag(
        "--learnt --leave-one-out",
        "The rows were learnt: score each by a model without its fold. Default: by the ledger.",
    ),
]
New = Annotated[bool, flag("--new", "The rows were not learnt.")]
Against = Annotated[str | None, option("--against", "FILE", "Labelled rows to compare with those learnt: drift.")]
Title = Annotated[str, option("--title", "TEXT", "Heading of the page.")]
TITLE = "-- deciban: answers of "  # first line of an output
Table = Annotated[str, option("--table", "NAME", "Table that holds the rows.")]
Dialect = Annotated[str, option("--dialect", "NAME", "Dialect of SQL: duckdb, sqlite, postgres, bigquery, …")]
Keep = Annotated[
    list[str] | None, option("--keep", "COLUMN", "Column to return beside the answers; repeat it for more.")
]


# -- inspect -----------------------------------------------------------------------------------------------------------
@command(
    "deciban inspect tumours.deciban",
    "deciban inspect tumours.deciban --feature radius -o parameters.csv",
    panel=options.LOOK,
)
def inspect(
    terminal: Terminal,
    model: options.ModelFile,
    feature: Feature = None,
    most: Most = 40,
    level: Level = 0.9,
    output: options.Output = None,
    format: options.Format = None,
    force: options.Force = False,
    spreadsheet_safe: options.SpreadsheetSafe = False,
    verbose: options.Verbose = False,
) -> None:
    """Show a model: rows, families, calibration, ledger, and every parameter with its credible interval."""
    from deciban.model.explain import SHOWN, posterior_parameters

    check_target(output, [model], force, has_columns(*SHOWN))
    from deciban.store import describe

    clf = open_model(model)
    parameters = _selected(
        list(posterior_parameters(clf.model_, level)) if hasattr(clf, "model_") else [],
        feature or [],
        model,
    )
    if output is not None:
        import pyarrow as pa

        columns = {name: [getattr(line, name) for line in parameters] for name in SHOWN}
        write_tables([pa.table(columns)], output, format_of(output, format), spreadsheet_safe)
        terminal.note(f"{output}: {len(parameters):,} parameters of {model}")
        return
    summary = _summary(clf, model, describe(model), verbose)
    if terminal.json:
        terminal.dump(
            summary
            | _contents(clf)
            | {"parameters": [{name: getattr(line, name) for name in SHOWN} for line in parameters]}
        )
        return
    for name, value in summary.items():
        lines = [f"{key}: {item}" for key, item in value.items()] if isinstance(value, dict) else [value]
        for number, line in enumerate(lines):
            terminal.say(f"{'' if number else name:<12} {line}")
    if hasattr(clf, "n_components_"):
        from deciban.cli.other_models import show_clusters

        show_clusters(terminal, clf)
    elif hasattr(clf, "top_words"):
        terminal.say()
        terminal.lines(str(clf.table(10)))
    if parameters:
        terminal.say()
        _show_parameters(terminal, parameters, most, level)


def _contents(clf: Any) -> dict[str, Any]:
    """Clusters or topics as values for JSON."""
    if hasattr(clf, "n_components_"):
        from deciban.cli.other_models import profiles

        return {"clusters": profiles(clf)}
    if hasattr(clf, "top_words"):
        found = zip(clf.prevalence_.tolist(), clf.top_words(10, by="relevance"))
        return {"topics": [{"share": share, "words": words} for share, words in found]}
    return {}


def _summary(clf: Any, path: str, header: dict[str, Any], verbose: bool) -> dict[str, Any]:
    summary: dict[str, Any] = {"model": f"{path}: {header['kind']}{' (released)' if header['released'] else ''}"}
    if header["rows"] is not None:
        summary["rows"] = f"{header['rows']:,.15g}"
    if hasattr(clf, "model_"):
        summary |= _classifier_summary(clf.model_, path, verbose)
    summary["written"] = f"deciban {header['deciban']}, numpy {header['numpy']}; {header['bytes']:,} bytes"
    if header["note"]:
        summary["note"] = header["note"]
    return summary


def _classifier_summary(model: Model, path: str, verbose: bool) -> dict[str, Any]:
    from deciban.report.findings import block_models

    families = {}
    for block in block_models(model):
        features = block.features if len(block.features) <= 5 else (f"all {len(block.features)} columns",)
        comparison = f"; {block.comparison}" if verbose and block.comparison else ""
        families[", ".join(features)] = f"{block.model}{comparison}"
    stats, evidence = model.stats, _log_evidence(model)
    summary = {
        "classes": {str(name): f"{rows:,.15g} rows" for name, rows in zip(stats.classes, stats.rows)},
        "families": families,
        "rule": model.rule,
        "choices": choices_state(model, path),
        "calibration": calibration_state(model, path),
    }
    if evidence is not None:
        summary["evidence"] = f"{evidence:,.1f} nats: log P(rows | families), parameters integrated out"
    return summary | {"ledger": _ledger_text(model.ledger)}


def _ledger_text(ledger: Ledger | None) -> str:
    from deciban.model.ledger import Key

    if ledger is None:
        return "none: unlearn checks only that sums stay valid"
    key = "the public key" if ledger.key_id == Key.of(True).id else f"a private key, id {ledger.key_id}"
    return f"{len(ledger):,} rows, under {key}"


def _log_evidence(model: Model) -> float | None:
    import numpy as np

    from deciban.families.abilities import HasEvidence, ability

    family = ability(model.family, HasEvidence)
    return None if family is None else float(np.sum(family.log_evidence(model.stats.family)))


# -- parameters --------------------------------------------------------------------------------------------------------
def _selected(parameters: list[Parameter], wanted: list[str], path: str) -> list[Parameter]:
    """The parameters of the wanted features: a feature is named in full, or by its column."""

    def is_of(line: Parameter, name: str) -> bool:
        return name in (line.feature, line.column)

    for name in wanted:
        if not any(is_of(line, name) for line in parameters):
            raise unknown_name(name, sorted({line.feature for line in parameters}), "feature", path)
    return [line for line in parameters if not wanted or any(is_of(line, name) for name in wanted)]


def _show_parameters(terminal: Terminal, parameters: list[Parameter], most: int, level: float) -> None:
    rows = [
        (
            line.feature,
            line.parameter,
            line.label,
            f"{line.mean:.4g}",
            f"[{line.low:.4g}, {line.high:.4g}]",
            "" if line.evidence is None else f"{line.evidence:+.1f}".replace("-", "−"),
        )
        for line in parameters[:most]
    ]
    terminal.table(("feature", "parameter", "class", "mean", f"{level:.0%} interval", "decibans"), rows, (3, 5))
    if len(parameters) > most:
        terminal.say(f"… and {len(parameters) - most:,} more: --most, --feature NAME, or -o parameters.csv for all")


# -- report ------------------------------------------------------------------------------------------------------------
@command(
    "deciban report tumours.deciban tumours.csv -o report.html",
    "deciban report tumours.deciban tumours.csv --against ten.csv -o report.html",
    panel=options.LOOK,
)
def report(
    terminal: Terminal,
    model: options.ModelFile,
    rows: Rows = None,
    output: Page = "report.html",
    label: options.Label = None,
    leave_one_out: LeaveOneOut = False,
    new: New = False,
    against: Against = None,
    title: Title = "",
    force: options.Force = False,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    key_file: options.KeyFile = None,
) -> None:
    """Write a report as one page: the model, its figures, sliders of prior and costs, columns, rows, drift."""
    refuse_together(leave_one_out=leave_one_out, new=new)
    check_target(output, [model, rows, against], force, begins_like('content="deciban report"'))
    clf = open_model(model, "GenerativeClassifier", key=ledger_key(key_file))
    from deciban.cli.rows import label_column, open_rows, report_skipped

    def labelled(path: str | None) -> tuple[object, str] | None:
        if path is None:
            return None
        source = open_rows(terminal, path, read_as, skip_bad, clf=clf, several_passes=True)
        return source, label_column(clf, source, label)

    judged, other = labelled(rows), labelled(against)
    learnt = True if leave_one_out else False if new else None
    clf.report(output, *(judged or ()), learnt=learnt, other=other, title=title)
    for given in (judged, other):
        if given is not None:
            report_skipped(terminal, given[0])  # type: ignore[arg-type]
    if terminal.json:
        terminal.dump({"report": output})
    else:
        terminal.note(f"{output}: a report of {model}")


# -- export ------------------------------------------------------------------------------------------------------------
@command(
    "deciban export tumours.deciban --table tumours --keep patient -o tumours.sql",
    "deciban export tumours.deciban --table tumours --dialect sqlite -o tumours.sql --force",
    panel=options.LOOK,
)
def export(
    terminal: Terminal,
    model: options.ModelFile,
    table: Table = "rows",
    dialect: Dialect = "duckdb",
    keep: Keep = None,
    prior: options.Prior = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Write the model of a table as a SQL query, which answers where the rows are."""
    check_target(output, [model], force, begins_like(TITLE))
    clf = open_model(model, "GenerativeClassifier")
    query = clf.to_sql(dialect, table=table, keep=keep, prior=prior_of(prior, clf.stats_.classes))
    text = f"{TITLE}{model}\n{query};\n"
    if output is None:
        write_text(text)
        return
    write_file(output, text.encode())
    terminal.note(f"{output}: a query of {model} for the table {table!r}")
