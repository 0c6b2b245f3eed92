"""`deciban serve` and `deciban verify`: a model behind HTTP, and the check of its receipts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from deciban.cli import command as options
from deciban.cli.arguments import existing, ledger_key, open_model
from deciban.cli.command import argument, command, flag, option
from deciban.cli.output import Terminal, flush_answer
from deciban.errors import UsageError

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.read.batches import Batch

Host = Annotated[str, option("--host", "ADDRESS", "Address to listen on; other than this machine's needs --tokens.")]
Port = Annotated[int, option("--port -p", "N", "Port to listen on; 0 is any free one.", min=0, max=65535)]
Tokens = Annotated[
    str | None, option("--tokens", "FILE", "Bearer tokens: lines `read TOKEN NAME` or `teach TOKEN NAME`.")
]
AllowHost = Annotated[list[str] | None, option("--allow-host", "NAME", "Host name that clients use. Repeatable.")]
MostBody = Annotated[float, option("--most-mb", "N", "Largest request in megabytes.", min=0.001)]
MostRows = Annotated[int, option("--most-rows", "N", "Most rows in a request.", min=1)]
RateLimit = Annotated[float, option("--rate", "N", "Requests per second from one address; 0 for no limit.", min=0)]
SaveEvery = Annotated[
    float,
    option("--save-every", "SECONDS", "Write lessons into MODEL this often; the journal has them at once.", min=0.1),
]
Receipts = Annotated[str, argument("RECEIPT", "A receipt: the JSON that the service returned, or - for stdin.")]
KeptRows = Annotated[str | None, option("--rows", "FILE", "All rows that the model must hold: it is refitted.")]
Label = options.Label
Dry = Annotated[bool, flag("--check", "Load the model and its journal, then end.")]


@command("deciban serve tumours.deciban --check", panel=options.ASK)
def serve(
    terminal: Terminal,
    model: options.ModelFile,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    tokens: Tokens = None,
    allow_host: AllowHost = None,
    most_mb: MostBody = 8,
    most_rows: MostRows = 10_000,
    rate: RateLimit = 200,
    save_every: SaveEvery = 300,
    key_file: options.KeyFile = None,
    check: Dry = False,
) -> None:
    """Answer over HTTP, with a page at / to try, teach and undo. Lessons are kept in a journal beside the model."""
    existing(model)
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise UsageError("deciban serve needs Starlette and uvicorn: pip install 'deciban[web]'.") from None
    from pathlib import Path

    from deciban.cli.startup import keep_objects
    from deciban.service.app import Service
    from deciban.service.messages import Limits
    from deciban.service.server import Policy, allowed_hosts, is_loopback, listen, read_tokens
    from deciban.service.server import serve as answer
    from deciban.service.teacher import Teacher

    known = read_tokens(Path(existing(tokens))) if tokens is not None else ()
    if not is_loopback(host) and not known:
        raise UsageError(f"--host {host} can be reached from other machines, so tokens are needed: --tokens FILE.")
    limits = Limits(body=int(most_mb * 2**20), rows=most_rows, rate=rate, burst=5 * rate)
    teacher = Teacher(Path(model), ledger_key(key_file), save_every)
    try:
        if check:
            terminal.say(f"{model}: ready to serve; {teacher.published.version:,} lessons in its journal")
            return
        listening = listen(host, port)
        name = f"[{host}]" if ":" in host else host
        terminal.say(f"http://{name}:{listening.getsockname()[1]}/  serves {model}; stop with Ctrl-C")
        flush_answer()
        keep_objects()
        answer(Service(teacher, Policy(allowed_hosts(host, allow_host or ()), known, limits)), listening)
    finally:
        teacher.close()


@command("deciban verify receipt.json tumours.deciban", panel=options.LOOK)
def verify(
    terminal: Terminal,
    receipt: Receipts,
    model: options.ModelFile,
    rows: KeptRows = None,
    label: Label = None,
    read_as: options.ReadAs = None,
    key_file: options.KeyFile = None,
) -> None:
    """Check a receipt of unlearning against journal and model file of the service; with --rows, also by refitting."""
    import json
    import sys
    from pathlib import Path

    from deciban.cli.process import FAILURE
    from deciban.errors import InputError
    from deciban.model.ledger import Key
    from deciban.service.receipts import Receipt, verify_by_file, verify_by_refit
    from deciban.service.receipts import verify as verified
    from deciban.service.storage import file_digest, open_journal_of

    text = sys.stdin.read() if receipt == "-" else Path(existing(receipt)).read_text(encoding="utf-8")
    try:
        content = json.loads(text)
    except ValueError:
        raise InputError(f"{receipt} is not JSON.", remedy="Give the JSON that the service returned.") from None
    given = Receipt.of(content.get("receipt", content) if isinstance(content, dict) else content)
    journal = open_journal_of(Path(existing(model)))
    try:
        key = Key.of(ledger_key(key_file) or journal.secret)
        checks = list(verified(given, journal, key))
        included = journal.snapshot(file_digest(Path(model)))
    finally:
        journal.close()
    clf = open_model(model, "GenerativeClassifier")
    if included == given.lesson:
        checks += verify_by_file(given, clf.model_)
    if rows is not None:
        checks += verify_by_refit(given, clf.model_, _batches(terminal, clf, rows, label, read_as), key)
    right = all(check.holds for check in checks)
    if terminal.json:
        terminal.dump({"verified": right, "checks": [{"what": one.what, "holds": one.holds} for one in checks]})
    else:
        for one in checks:
            terminal.say(f"{'yes' if one.holds else 'NO ':3}  {one.what}")
    if not right:
        raise SystemExit(FAILURE)


def _batches(
    terminal: Terminal, clf: GenerativeClassifier, rows: str, label: str | None, read_as: str | None
) -> Iterator[Batch]:
    """The rows of a file with their labels, in batches as the model reads them."""
    from dataclasses import replace

    from deciban.cli.rows import label_column, open_rows, schema_of
    from deciban.read.batches import Rows

    schema, source = schema_of(clf), open_rows(terminal, rows, read_as, clf=clf)
    name = label_column(clf, source, label)
    return Rows(source, name, None, lambda table, each: replace(schema, label=each)).batches()
