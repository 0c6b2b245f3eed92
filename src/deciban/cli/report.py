"""`deciban report`: a model, its figures and its rows as one self-contained page."""

from __future__ import annotations

from typing import Annotated

from deciban.cli import command as options
from deciban.cli.arguments import ledger_key, open_model
from deciban.cli.command import argument, command, flag, option, refuse_together
from deciban.cli.output import Terminal, begins_like, check_target

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
