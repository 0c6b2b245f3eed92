"""`deciban filter`: classifies one mail on its way to a folder, and adds a header with the answer.

The message is not changed otherwise, except that headers of the same name are removed: its sender may have written
them. A message that cannot be read gets the header "none; error; unsure=yes". If the model cannot be used, nothing is
written and the exit code is not 0: mail filters then keep the original message.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from deciban.cli import command as options
from deciban.cli.arguments import cost_of, existing, open_model, pairs, prior_of
from deciban.cli.command import command, option, refuse_together
from deciban.cli.mail_client import CODES, NoAnswerError, ask, no_answer, read_token
from deciban.cli.mail_client import exit_code as code_of_answer
from deciban.cli.output import Terminal, answer_stream
from deciban.errors import DecibanError, UsageError
from deciban.printable import lines

Unsure = Annotated[
    float, option("--unsure", "P", "Posterior probability below which an answer is unsure.", min=0, max=1)
]
ExitCode = Annotated[
    list[str] | None, option("--exit-code", "CLASS=N", "Exit code for a class that is not unsure. Repeatable.")
]
Service = Annotated[
    str | None, option("--service", "URL", "Ask a running `deciban serve` first; if none answers, read MODEL.")
]
TokenFile = Annotated[str | None, option("--token-file", "FILE", "With --service: holds a token that may read.")]


@command("deciban filter languages.deciban < mystery.txt", panel=options.ASK)
def filter_(
    terminal: Terminal,
    model: options.ModelFile,
    unsure: Unsure = 0.9,
    prior: options.Prior = None,
    cost: options.Cost = None,
    exit_code: ExitCode = None,
    service: Service = None,
    token_file: TokenFile = None,
) -> None:
    """Read a mail from stdin, add the header `X-Deciban: spam; 32 dban; unsure=no`, and write it to stdout."""
    refuse_together(service=service, prior=prior)
    refuse_together(service=service, cost=cost)
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("deciban filter reads a mail from stdin. Use a pipe, or < message.eml.")
    codes = _exit_codes(exit_code or [])
    message = sys.stdin.buffer.read()
    answer = None if service is None else _ask(terminal, service, message, unsure, token_file)
    if answer is None:
        value = _decide(terminal, model, message, unsure, prior, cost)
        from deciban.read.mail import with_header

        answer = with_header(message, value), value
    with answer_stream(lines) as stream:
        stream.write(answer[0])
    if code := code_of_answer(answer[1], codes):
        raise typer.Exit(code)


def _decide(
    terminal: Terminal, path: str, message: bytes, unsure: float, prior: list[str] | None, cost: list[str] | None
) -> str:
    """The header by a model file; with a note, if the message cannot be read."""
    clf = open_model(path, "GenerativeClassifier")
    import pyarrow as pa

    from deciban.cli.rows import GivenDocuments, schema_of
    from deciban.evidence.scores import convert
    from deciban.read.mail import FIELDS, UNREAD, MailAnswer, RawMessage
    from deciban.read.paths import within_limit
    from deciban.read.tables import Table

    schema = schema_of(clf)
    wanted = tuple(column.name for column in schema.columns if column.features)
    if not set(wanted) <= set(FIELDS) and not (len(wanted) == 1 and schema[wanted[0]].kind == "text"):
        raise UsageError(f"{path} reads the columns {', '.join(wanted)}, not mail. Fit it on a folder of mail.")
    classes = clf.stats_.classes
    settings = {"prior": prior_of(prior, classes), "cost": cost_of(cost, classes)}
    documents = GivenDocuments("-", wanted)
    try:
        row = documents.row(RawMessage("the message", within_limit(message, "the message", documents.limits)))
        table = schema.apply(Table.of(pa.table({name: pa.array([row[name]], pa.large_string()) for name in wanted})))
        made = clf.decide(table, **settings)
    except DecibanError as error:
        terminal.warn(f"deciban: the message is passed through without an answer: {error}")
        return UNREAD
    answer = MailAnswer(str(made.label[0]), float(convert(made.llr[0], "decibans")), float(made.posterior[0]))
    return answer.header(answer.posterior < unsure)


def _ask(
    terminal: Terminal, service: str, message: bytes, unsure: float, token_file: str | None
) -> tuple[bytes, str] | None:
    """The message with its header, and the header, of a running service; None, with a note, if it does not answer."""
    try:
        token = None if token_file is None else read_token(existing(token_file))
        return ask(service, message, unsure, token)
    except (NoAnswerError, OSError) as error:
        terminal.warn(no_answer(service, error))
        return None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _exit_codes(given: list[str]) -> dict[str, int]:
    """The exit code of each class, named as the header names it, of --exit-code spam=99."""
    if not given:
        return {}
    from deciban.read.mail import header_text

    found = {}
    for name, code in pairs(given, "--exit-code", "spam=99"):
        if not code.isdigit() or int(code) not in CODES:
            raise UsageError(f"--exit-code {name}={code}: exit codes are whole numbers from 1 to 125.")
        found[header_text(name)] = int(code)
    return found
