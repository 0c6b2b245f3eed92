"""`deciban inspect`: what a model file holds: rows, families, calibration, ledger and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from deciban.cli import command as options
from deciban.cli.arguments import calibration_state, choices_state, open_model, unknown_name
from deciban.cli.command import command, option
from deciban.cli.output import check_target, has_columns
from deciban.cli.tables import format_of, write_tables
from deciban.cli.terminal import Terminal

if TYPE_CHECKING:
    from deciban.families.posterior import Marginal
    from deciban.families.transformed import Transformed
    from deciban.model.ledger import Ledger
    from deciban.model.model import Model
    from deciban.statistics import Array, Stats
    from deciban.text import Text

PROBABILITIES = {"p", "theta"}  # parameters whose ratio between classes is evidence
Feature = Annotated[list[str] | None, option("--feature", "NAME", "Only parameters of this feature. Repeatable.")]
Most = Annotated[int, option("--most", "N", "Largest number of parameters to print.", min=1)]
Level = Annotated[float, option("--level", None, "Level of the credible intervals.", min=0.01, max=0.999)]


class Parameter(NamedTuple):
    """A parameter of one class, or of all classes if they share it."""

    feature: str
    parameter: str
    label: str  # the class; "all" if it is shared
    mean: float
    low: float
    high: float
    evidence: float | None  # decibans of this value for the class over the others, if the parameter is a probability


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
    check_target(output, [model], force, has_columns(*Parameter._fields))
    from deciban.store import describe

    clf = open_model(model)
    parameters = _selected(list(_parameters(clf.model_, level)) if hasattr(clf, "model_") else [], feature or [], model)
    if output is not None:
        import pyarrow as pa

        columns = {name: [getattr(line, name) for line in parameters] for name in Parameter._fields}
        write_tables([pa.table(columns)], output, format_of(output, format), spreadsheet_safe)
        terminal.note(f"{output}: {len(parameters):,} parameters of {model}")
        return
    summary = _summary(clf, model, describe(model), verbose)
    if terminal.json:
        terminal.dump(summary | {"parameters": [line._asdict() for line in parameters]})
        return
    for name, value in summary.items():
        lines = [f"{key}: {item}" for key, item in value.items()] if isinstance(value, dict) else [value]
        for number, line in enumerate(lines):
            terminal.say(f"{'' if number else name:<12} {line}")
    if parameters:
        terminal.say()
        _show_parameters(terminal, parameters, most, level)


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
def _parameters(model: Model, level: float) -> Iterator[Parameter]:
    """The parameters of every block whose family has a posterior, except covariances."""
    import numpy as np

    from deciban.families.abilities import HasPosterior, ability
    from deciban.families.product import blocks_of
    from deciban.families.transformed import Transformed
    from deciban.text import Text

    classes, names = [str(name) for name in model.stats.classes], model.reader.labels
    for (family, stats), positions in zip(blocks_of(model.family, model.stats.family), model.positions):
        columns = [names[j] for j in positions]
        if isinstance(family, Text):
            yield from _word_parameters(family, stats, classes, level)
            continue
        described = ability(family, HasPosterior)
        if described is None:
            continue
        posterior = described.posterior(stats)
        for name in posterior:
            marginal = posterior[name]
            if np.ndim(marginal.mean) <= 2:  # a covariance has more; the variances are its diagonal
                features = _feature_names(stats, columns, np.shape(marginal.mean)[-1])
                back: Callable[[Array], Array] | None = None
                if isinstance(family, Transformed):
                    back = partial(_in_units, family, stats.map) if name == "mean" else None
                    name = "median" if name == "mean" else f"{name}, transformed"
                yield from _of_marginal(features, name, classes, marginal, level, back)


def _in_units(family: Transformed, map: Array, values: Array) -> Array:
    """Means of transformed values as medians in the units of the column."""
    import numpy as np

    return family.unmapped(values, map, np.random.default_rng(0))


def _word_parameters(family: Text, stats: Any, classes: Sequence[str], level: float) -> Iterator[Parameter]:
    """The probabilities of words; frequent words with large evidence first."""
    from deciban.text.stats import UNK, count_family, word_sums

    axis, sums, *_ = word_sums(family, stats)
    words = [str(name) for name in axis.names if name != UNK] + [UNK] * (UNK in axis.names)
    marginal = count_family(family, sums).posterior(sums)["p"]  # type: ignore[arg-type]
    lines = list(_of_marginal(words, "p", classes, marginal, level))
    K = len(classes)
    by_word = [lines[j * K : (j + 1) * K] for j in range(len(words))]
    by_word.sort(key=lambda some: -sum(line.mean * abs(line.evidence or 0.0) for line in some))
    yield from chain.from_iterable(by_word)


def _of_marginal(
    features: Sequence[str],
    name: str,
    classes: Sequence[str],
    marginal: Marginal,
    level: float,
    back: Callable[[Array], Array] | None = None,
) -> Iterator[Parameter]:
    """The parameters of one marginal of a posterior, (K, P) or (P,); `back` maps them to the units of the column."""
    import numpy as np

    low, high, mean = (np.atleast_2d(each) for each in (*marginal.interval(level), marginal.mean))
    if back is not None:
        low, high, mean = back(low), back(high), back(mean)
    K = len(mean)
    evidence = _decibans_over_others(mean) if name in PROBABILITIES and K > 1 else None
    for j, feature in enumerate(features):
        for k in range(K):
            decibans = None if evidence is None else float(evidence[k, j])
            numbers = (float(mean[k, j]), float(low[k, j]), float(high[k, j]))
            yield Parameter(feature, name, classes[k] if len(classes) == K else "all", *numbers, decibans)


def _decibans_over_others(p: Array) -> Array:
    """Evidence for each class over the mean of the others, in decibans."""
    import numpy as np

    from deciban.evidence.scores import convert

    others = (p.sum(axis=0) - p) / (len(p) - 1)
    with np.errstate(divide="ignore"):
        return convert(np.log(p) - np.log(others), "decibans")


def _feature_names(stats: Stats, columns: Sequence[str], size: int) -> list[str]:
    """Names along the last axis of a parameter: columns, categories of columns, or words."""
    from deciban.statistics import Axis, Ragged

    for name, axis in stats.labels.items():
        if isinstance(axis, Ragged) and axis.size == size:
            return [f"{column}={value}" for column, part in zip(columns, axis.parts) for value in part.names]
        if name == "word" and isinstance(axis, Axis) and axis.size == size and not isinstance(axis.names, range):
            return [str(word) for word in axis.names]
    return list(columns) if len(columns) == size else [f"all of {', '.join(columns)}"] * size


def _selected(parameters: list[Parameter], wanted: list[str], path: str) -> list[Parameter]:
    """The parameters of the wanted features: a feature is named in full, or by its column."""

    def is_of(line: Parameter, name: str) -> bool:
        return line.feature == name or line.feature.startswith(f"{name}=")

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
