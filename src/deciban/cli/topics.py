"""`deciban topics`: what texts are about."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.cluster import sizes_of
from deciban.cli.command import command
from deciban.cli.models import column_named
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

Sizes = Annotated[
    str, typer.Option("--topics", "-k", metavar="N|FROM-TO", help="How many; of a range, held-out texts choose.")
]
TextColumn = Annotated[str | None, typer.Option("--text", metavar="COLUMN", help="The column of texts.")]
Save = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Keep the model.")]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write a page that shows the topics.")]
Words = Annotated[int, typer.Option("--words", min=1, metavar="N", help="Shown of each topic.")]
StopWords = Annotated[str, typer.Option("--stop-words", metavar="LANGUAGE", help="Words to leave out; none for all.")]


@command("deciban topics languages -k 5 --html topics.html", panel=options.MORE)
def topics(
    terminal: Terminal,
    rows: options.Rows = "-",
    text: TextColumn = None,
    topics: Sizes = "20",
    words: Words = 10,
    stop_words: StopWords = "english",
    seed: options.Seed = 0,
    output: Save = None,
    html: Html = None,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Find the topics of texts (latent Dirichlet allocation): how common each is, and its most telling words."""
    sizes = sizes_of(topics, "--topics")
    from deciban.cli.rows import open_rows, report_skipped
    from deciban.topics.topic_model import TopicModel

    source = open_rows(terminal, rows, read_as, skip_bad)
    texts = _texts(source, text)
    model = TopicModel(
        sizes if len(sizes) > 1 else sizes[0],
        stop_words=None if stop_words == "none" else stop_words,
        random_state=seed,
        progress=terminal.watched,
    ).fit(texts)
    report_skipped(terminal, source)
    if output is not None:
        model.save(output, note=f"topics of {source.name}")
    if html is not None:
        model.to_html(html, texts)
    table = model.table(words)
    if terminal.json:
        found = zip(model.prevalence_.tolist(), model.top_words(words, by="relevance"))
        terminal.dump({"rows": len(texts), "topics": [{"share": share, "words": said} for share, said in found]})
    else:
        terminal.say(str(table))


def _texts(source: Any, wanted: str | None) -> list[str]:
    """The column of texts: as named, or the only one."""
    from deciban.read.batches import with_progress
    from deciban.read.schema import Schema
    from deciban.read.tables import stacked

    given = stacked(list(with_progress(source)))
    if wanted is None:
        kinds = {column.name: column.kind for column in Schema.infer(given).columns}
        found = [name for name, kind in kinds.items() if kind == "text"]
        if len(found) != 1:
            raise UsageError(f"which column of {source.name} holds the texts? Say --text, one of: {', '.join(kinds)}.")
        wanted = found[0]
    column = given.data[column_named(wanted, source.columns, source.name)].to_list()
    return ["" if value is None else str(value) for value in column]
