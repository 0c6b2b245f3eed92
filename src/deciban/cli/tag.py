"""`deciban tag`: the tags of words in sentences, by a hidden Markov model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command, flag
from deciban.cli.models import existing, open_model
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

Tagged = Annotated[
    str, typer.Argument(metavar="TAGGED", help="Sentences with tags to learn from, or a model.", show_default=False)
]
Sentences = Annotated[str, typer.Argument(metavar="SENTENCES", help="What to tag; - for stdin.", show_default="stdin")]
Save = Annotated[str | None, typer.Option("--save", metavar="FILE", help="Keep the model.")]
Evaluate = Annotated[bool, flag("--evaluate", help="The sentences have tags: say how many are found.")]


@command(
    "deciban tag tagged.tsv new.txt",
    "deciban tag train.conllu test.conllu --evaluate --save english.deciban",
    panel=options.MORE,
)
def tag(
    terminal: Terminal, tagged: Tagged, sentences: Sentences = "-", save: Save = None, evaluate: Evaluate = False
) -> None:
    """Tag the words of sentences: a word and its tag a line, a blank line between sentences; or in --json, a line each.

    Files have a word, a tab and its tag a line (CoNLL-U too), or JSON lines with "words" and "tags". What is to be
    tagged may also be plain text, a sentence a line.
    """
    from deciban.read.sentences import read_sentences

    model, features = _model(tagged)
    if save is not None:
        model.save(save, note=f"tags as in {tagged}")
    given = read_sentences(existing(sentences), evaluate)
    lengths = [len(one.words) for one in given]
    found = model.predict(features.rows([one.words for one in given]), lengths).tolist()
    said = iter([str(state).split("|")[0] for state in found])
    answers = [[next(said) for _ in one.words] for one in given]
    if evaluate:
        _judge(terminal, given, answers)
        return
    for one, tags in zip(given, answers):
        if terminal.json:
            terminal.dump({"words": one.words, "tags": tags})
        else:
            print("".join(f"{word}\t{tag}\n" for word, tag in zip(one.words, tags)))


def _model(path: str) -> tuple[Any, Any]:
    """A model from a file, or learnt from sentences."""
    from deciban import Categorical, HiddenMarkovModel, Product
    from deciban.read.sentences import read_sentences
    from deciban.text.word_shapes import RARE_WORD, WordFeatures

    if existing(path).endswith(".deciban"):
        model = open_model(path, "HiddenMarkovModel")
        names = [part.names for part in _categories(model)]
        if len(names) != 3:
            raise UsageError(f"{path} is no model of words. Make one: deciban tag TAGGED --save {path}.")
        return model, WordFeatures(frozenset(names[0]) - {RARE_WORD}, frozenset(names[1]) - {""})
    learnt = read_sentences(path, True)
    features = WordFeatures.of([one.words for one in learnt])
    family = Product({0: Categorical(0.003), 1: Categorical(0.03), 2: Categorical(0.03)})
    states = [tag for one in learnt for tag in one.tags or []]
    model = HiddenMarkovModel(family, transition_pseudo_count=0.1)
    return model.fit(features.rows([one.words for one in learnt]), states, [len(one.words) for one in learnt]), features


def _categories(model: Any) -> list[Any]:
    """The names along each column of words, endings and shapes."""
    from deciban.statistics import Ragged

    blocks = getattr(model.stats_.emissions, "blocks", {}) if model.stats_ is not None else {}
    axes = [axis for stats in blocks.values() for axis in stats.labels.values() if isinstance(axis, Ragged)]
    return [part for axis in axes for part in axis.parts]


def _judge(terminal: Terminal, given: list[Any], answers: list[list[str]]) -> None:
    """How many tags are as they should be; of a tag such as VERB|VBD the first half counts."""
    pairs = [
        (true.split("|")[0], said) for one, tags in zip(given, answers) for true, said in zip(one.tags or [], tags)
    ]
    right = sum(true == said for true, said in pairs)
    if terminal.json:
        terminal.dump({"words": len(pairs), "right": right, "accuracy": right / len(pairs)})
    else:
        terminal.say(f"{right:,} of {len(pairs):,} tags are right: {right / len(pairs):.2%}")
