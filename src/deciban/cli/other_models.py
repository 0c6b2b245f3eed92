"""`deciban cluster`, `topics` and `tag`: mixtures, topic models, hidden Markov models; answers of saved models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from deciban.cli import app as options
from deciban.cli.app import argument, columns, command, flag, option
from deciban.cli.arguments import column_named, existing, open_model, sizes_of
from deciban.cli.output import Terminal, begins_like, check_target, has_columns, is_model, write_text
from deciban.cli.tables import beside, format_of, rounded, write_tables
from deciban.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from deciban.estimators.clustering import MixtureModel
    from deciban.estimators.hidden_markov import HiddenMarkovModel
    from deciban.read.schema import Schema
    from deciban.read.source import Source
    from deciban.read.tables import Table
    from deciban.read.texts import Sentence
    from deciban.statistics import Axis
    from deciban.text.word_shapes import WordFeatures
    from deciban.topics.estimator import TopicEstimator

Clusters = Annotated[str, option("--clusters -k", "N|FROM-TO", "Number of clusters; of a range, BIC chooses.")]
Ignore = Annotated[list[str] | None, option("--ignore", "COLUMN", "Do not use this column. Repeatable.", columns)]
Topics = Annotated[str, option("--topics -k", "N|FROM-TO", "Number of topics; of a range, held-out texts choose.")]
TextColumn = Annotated[str | None, option("--text", "COLUMN", "The column of texts, in a table.")]
SaveTopics = Annotated[str | None, option("--output -o", "FILE", "Save the model.")]
Html = Annotated[str | None, option("--html", "FILE", "Write a page that shows the topics.")]
Words = Annotated[int, option("--words", "N", "Number of words printed per topic.", min=1)]
StopWords = Annotated[str, option("--stop-words", "LANGUAGE", "Leave out a language's stop words; 'none': keep all.")]
Tagged = Annotated[str, argument("TAGGED", "Tagged sentences to learn from, or a model.")]
Sentences = Annotated[str, argument("SENTENCES", "Sentences to tag; - for stdin.", show_default="stdin")]
EvaluateTags = Annotated[bool, flag("--evaluate", "SENTENCES has tags: print how many are predicted.")]
DRAWN = 20_000  # rows drawn from a mixture for the profiles of its clusters
MOST_NAMES = 3  # of a category, in a profile


# -- cluster -----------------------------------------------------------------------------------------------------------
@command("deciban cluster tumours.csv -k 1-4 --ignore diagnosis --append -o clusters.csv", panel=options.OTHER_MODELS)
def cluster(
    terminal: Terminal,
    rows: options.Rows = "-",
    clusters: Clusters = "1-8",
    ignore: Ignore = None,
    append: options.Append = False,
    seed: options.Seed = 0,
    save: options.SaveModel = None,
    output: options.Output = None,
    format: options.Format = None,
    force: options.Force = False,
    spreadsheet_safe: options.SpreadsheetSafe = False,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Cluster a table by a mixture model: the cluster of each row, its probability, and whether it is an outlier.

    For texts there are topics: deciban topics --help.
    """
    kind = format_of(output, format, terminal.json)
    sizes = sizes_of(clusters, "--clusters")
    check_target(output, [rows, save], force, has_columns("cluster", "probability", "outlier"))
    check_target(save, [rows], force, is_model)
    from deciban.cli.rows import has_cells, is_txt, open_rows, report_skipped
    from deciban.estimators.clustering import MixtureModel
    from deciban.read.arrow import arrow_table
    from deciban.read.schema import Schema

    if read_as is None and is_txt(rows) and os.path.isfile(rows) and not has_cells(rows, 1):
        raise UsageError(
            f"{rows} is no table: its lines have different numbers of cells. For one text a line: deciban topics "
            f"{rows}; for a table with a wrong row: --read-as csv."
        )
    source = open_rows(terminal, rows, read_as, skip_bad)
    for name in ignore or []:
        column_named(name, source.columns, source.name)
    given = _whole_table(source)
    schema = Schema.infer(given, None, dict.fromkeys(ignore or [], "identifier"))
    frame = typed_columns(given, schema)
    if not frame.num_columns:
        raise UsageError(f"{source.name} has no column of numbers or names. For texts, see: deciban topics --help")
    several = len(sizes) > 1
    model = MixtureModel(sizes if several else sizes[0], random_state=seed, progress=terminal.progress).fit(frame)
    answers = cluster_answers(model, frame)
    write_tables([beside(arrow_table(given), answers) if append else answers], output, kind, spreadsheet_safe)
    report_skipped(terminal, source)
    if save is not None:
        from deciban.store import save as save_model

        model.schema_ = schema
        save_model(model, save, note=f"clusters of {source.name}")
    chosen = f", chosen by BIC among {sizes[0]} to {sizes[-1]}" if several else ""
    shares = ", ".join(f"{share:.0%}" for share in model.weights_)
    terminal.note(f"{model.n_components_} clusters{chosen}: {shares} of {len(given):,} rows")


def _whole_table(source: Source) -> Table:
    """All rows, as they were read."""
    from deciban.read.batches import with_progress
    from deciban.read.tables import stacked

    return stacked(list(with_progress(source)))


# -- topics ------------------------------------------------------------------------------------------------------------
@command("deciban topics languages -k 5 --html topics.html", panel=options.OTHER_MODELS)
def topics(
    terminal: Terminal,
    rows: options.Rows = "-",
    text: TextColumn = None,
    topics: Topics = "20",
    words: Words = 10,
    stop_words: StopWords = "english",
    seed: options.Seed = 0,
    output: SaveTopics = None,
    html: Html = None,
    force: options.Force = False,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Find the topics of texts (latent Dirichlet allocation): the share of each, and its most relevant words.

    A .txt file is read as one text a line, unless it is a table: with --text COLUMN or --read-as csv, or if its lines
    have equally many cells. A folder holds one text in each file.
    """
    sizes = sizes_of(topics, "--topics")
    check_target(output, [rows], force, is_model)
    check_target(html, [rows, output], force, begins_like("deciban"))
    from deciban.cli.rows import open_rows, report_skipped
    from deciban.topics.topic_model import TopicModel

    source = open_rows(terminal, rows, read_as, skip_bad, texts=text or "")
    texts = texts_of(_whole_table(source), source, text)
    model = TopicModel(
        sizes if len(sizes) > 1 else sizes[0],
        stop_words=None if stop_words == "none" else stop_words,
        random_state=seed,
        progress=terminal.progress,
    ).fit(texts)
    report_skipped(terminal, source)
    if output is not None:
        model.save(output, note=f"topics of {source.name}")
    if html is not None:
        model.to_html(html, texts)
    if terminal.json:
        found = zip(model.prevalence_.tolist(), model.top_words(words, by="relevance"))
        terminal.dump({"rows": len(texts), "topics": [{"share": share, "words": top} for share, top in found]})
    else:
        terminal.lines(str(model.table(words)))


# -- tag ---------------------------------------------------------------------------------------------------------------
@command(
    "deciban tag tagged.tsv new.txt",
    "deciban tag train.conllu test.conllu --evaluate --save english.deciban",
    panel=options.OTHER_MODELS,
)
def tag(
    terminal: Terminal,
    tagged: Tagged,
    sentences: Sentences = "-",
    save: options.SaveModel = None,
    force: options.Force = False,
    evaluate: EvaluateTags = False,
) -> None:
    """Tag words by a hidden Markov model: a word and its tag per line, a blank line between sentences; or JSON lines.

    Files have a word, a tab and its tag per line (CoNLL-U too), or JSON lines with "words" and "tags". Sentences to tag
    may also be plain text, one sentence per line.
    """
    check_target(save, [tagged, sentences], force, is_model)
    from deciban.read.texts import read_sentences

    model, features = _tagger(tagged)
    if save is not None:
        model.save(save, note=f"tags as in {tagged}")
    given = read_sentences(existing(sentences), evaluate)
    words = [sentence.words for sentence in given]
    states = iter(model.predict(features.rows(words), [len(each) for each in words]).tolist())
    predicted = [[str(next(states)).split("|")[0] for _ in each] for each in words]
    if evaluate:
        _evaluate_tags(terminal, given, predicted)
        return
    for each, tags in zip(words, predicted):
        if terminal.json:
            terminal.dump({"words": each, "tags": tags})
        else:
            write_text("".join(f"{word}\t{tag}\n" for word, tag in zip(each, tags)) + "\n")


def _tagger(path: str) -> tuple[HiddenMarkovModel, WordFeatures]:
    """A tagger from a model file, or learnt from tagged sentences."""
    from deciban import HiddenMarkovModel
    from deciban.read.texts import read_sentences
    from deciban.text.word_shapes import RARE_WORD, WordFeatures, word_family

    if existing(path).endswith(".deciban"):
        model = open_model(path, "HiddenMarkovModel")
        names = [part.names for part in _category_axes(model)]
        if len(names) != 3:
            raise UsageError(f"{path} is not a model of words. Make one: deciban tag TAGGED --save {path}.")
        return model, WordFeatures(frozenset(names[0]) - {RARE_WORD}, frozenset(names[1]) - {""})
    learnt = read_sentences(path, True)
    words = [sentence.words for sentence in learnt]
    features = WordFeatures.of(words)
    tags = [tag for sentence in learnt for tag in sentence.tags or []]
    model = HiddenMarkovModel(word_family(), transition_pseudo_count=0.1)
    return model.fit(features.rows(words), tags, [len(each) for each in words]), features


def _category_axes(model: HiddenMarkovModel) -> list[Axis]:
    """The categories of the model's columns: words, endings and shapes."""
    from deciban.statistics import Ragged

    blocks = getattr(model.stats_.emissions, "blocks", {}) if model.stats_ is not None else {}
    axes = [axis for stats in blocks.values() for axis in stats.labels.values() if isinstance(axis, Ragged)]
    return [part for axis in axes for part in axis.parts]


def _evaluate_tags(terminal: Terminal, given: list[Sentence], predicted: list[list[str]]) -> None:
    """Print how many tags are right; of a tag such as VERB|VBD the first part counts."""
    pairs = [
        (true.split("|")[0], tag)
        for sentence, tags in zip(given, predicted)
        for true, tag in zip(sentence.tags or [], tags)
    ]
    right = sum(true == tag for true, tag in pairs)
    if terminal.json:
        terminal.dump({"words": len(pairs), "right": right, "accuracy": right / len(pairs)})
    else:
        terminal.say(f"{right:,} of {len(pairs):,} tags are right: {right / len(pairs):.2%}")


# -- answers of saved clusters and topics ------------------------------------------------------------------------------
def saved_answers(model: Any, path: str, source: Source, text: str | None, append: bool) -> Iterator[pa.Table]:
    """The answers of clusters or topics to rows, batch by batch; behind the columns of the input if wanted."""
    from deciban.read.arrow import arrow_table
    from deciban.read.batches import with_progress

    for given in with_progress(source):
        if hasattr(model, "n_components_"):
            answers = cluster_answers(model, typed_columns(given, _schema(model, path)))
        else:
            answers = _topic_answers(model, texts_of(given, source, text))
        yield beside(arrow_table(given), answers) if append else answers


def cluster_answers(model: MixtureModel, frame: pa.Table) -> pa.Table:
    """The cluster of each row, counted from 1, its probability, and whether the row is an outlier."""
    import pyarrow as pa

    p = model.predict_proba(frame)
    outlier = model.outliers(frame)
    return pa.table({"cluster": p.argmax(axis=1) + 1, "probability": rounded(p.max(axis=1)), "outlier": outlier})


def _topic_answers(model: TopicEstimator, texts: list[str]) -> pa.Table:
    """The topic with the largest share in each text, counted from 0 as in the table of topics, and all shares."""
    import pyarrow as pa

    shares = model.transform(texts)
    best = {"topic": shares.argmax(axis=1), "share": rounded(shares.max(axis=1))}
    return pa.table(best | {f"topic {k}": rounded(shares[:, k]) for k in range(shares.shape[1])})


def _schema(model: Any, path: str) -> Schema:
    schema = getattr(model, "schema_", None)
    if schema is None:
        raise UsageError(
            f"{path} does not say how files are read: it was not saved by deciban cluster. Use it from Python, or save "
            "it with: deciban cluster ROWS --save MODEL"
        )
    return schema


def typed_columns(given: Table, schema: Schema) -> pa.Table:
    """The columns of numbers and names."""
    import pyarrow as pa

    typed = schema.apply(given)
    return pa.table({name: typed.column(j) for j, name in enumerate(typed.columns) if typed.kind(j) != "text"})


def texts_of(given: Table, source: Source, wanted: str | None) -> list[str]:
    """The texts of a column: the named one, or the only column of texts."""
    from deciban.read.schema import Schema

    name = source.name
    if wanted is None and len(source.texts) == 1:
        wanted = source.texts[0]
    if wanted is None:
        kinds = {column.name: column.kind for column in Schema.infer(given).columns}
        found = [column for column, kind in kinds.items() if kind == "text"]
        if len(found) != 1:
            columns = ", ".join(kinds)
            raise UsageError(f"which column of {name} holds the texts? Name it with --text. Columns: {columns}.")
        wanted = found[0]
    column = given.data[column_named(wanted, list(given.columns), name)].to_list()
    return ["" if value is None else str(value) for value in column]


# -- inspection of saved clusters --------------------------------------------------------------------------------------
def profiles(model: MixtureModel) -> list[dict[str, Any]]:
    """The share of each cluster, and its typical values of each column, from rows drawn from the model."""
    import numpy as np

    drawn, codes = model.sample(DRAWN, random_state=0)
    cells = np.asarray(drawn.toarray() if hasattr(drawn, "toarray") else drawn)
    found = []
    for k, share in enumerate(model.weights_.tolist()):
        own = cells[np.asarray(codes) == k]
        columns = {str(name): _typical(own[:, j]) for j, name in enumerate(model.columns_)} if len(own) else {}
        found.append({"cluster": k + 1, "share": share, "columns": columns})
    return found


def _typical(values: Any) -> str:
    """The median and the middle 80 % of numbers; the most frequent names."""
    import numpy as np

    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        names, counts = np.unique([str(value) for value in values], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST_NAMES]
        return ", ".join(f"{names[i]} {counts[i] / len(values):.0%}" for i in order)
    low, middle, high = np.nanquantile(numbers, (0.1, 0.5, 0.9))
    return f"{middle:.4g} ({low:.4g} to {high:.4g})".replace("-", "−")


def show_clusters(terminal: Terminal, model: MixtureModel) -> None:
    """Print the profiles: a line for each column, a column for each cluster."""
    found = profiles(model)
    terminal.heading("Clusters: share, and the median (80 % of the values) or the most frequent names")
    heads = ("column", *(f"{one['cluster']}: {one['share']:.0%}" for one in found))
    rows = [(name, *(one["columns"].get(name, "–") for one in found)) for name in map(str, model.columns_)]
    terminal.table(heads, rows)
