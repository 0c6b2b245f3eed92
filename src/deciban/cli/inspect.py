"""`deciban inspect`: what a model file holds, as a table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command
from deciban.cli.models import nearest, open_model
from deciban.cli.output import format_of, write_tables
from deciban.cli.terminal import Terminal

Feature = Annotated[list[str] | None, typer.Option("--feature", metavar="NAME", help="Only this one. Repeatable.")]
Most = Annotated[int, typer.Option("--most", min=1, metavar="N", help="Lines at most; a file gets them all.")]
Level = Annotated[float, typer.Option("--level", min=0.01, max=0.999, help="Of the credible intervals.")]


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
) -> None:
    """Show a model: rows, families, calibration, ledger, and every parameter with its credible interval."""
    from deciban.store import describe

    clf = open_model(model)
    about = describe(model)
    told = _summary(clf, model, about)
    lines = _parameters(clf, level, feature or [], model)
    if output is not None:
        write_tables(iter([_table(lines)]), output, format_of(output, format))
        terminal.note(f"{len(lines):,} parameters of {model} in {output}")
        return
    if terminal.json:
        terminal.dump(told | {"parameters": [line._asdict() for line in lines]})
        return
    for name, value in told.items():
        if not isinstance(value, dict):
            terminal.say(f"{name:<12} {value}")
            continue
        for at, (key, item) in enumerate(value.items()):
            terminal.say(f"{name if at == 0 else '':<12} {key}: {item}")
    _show(terminal, lines, most, level)


def _summary(clf: Any, path: str, about: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"model": f"{path}: {about['kind']}{' (released)' if about['released'] else ''}"}
    if about["rows"] is not None:
        told["rows"] = f"{about['rows']:,.15g}"
    if hasattr(clf, "stats_") and hasattr(clf, "families_"):
        told["classes"] = {str(name): f"{rows:,.15g} rows" for name, rows in zip(clf.stats_.classes, clf.stats_.rows)}
        told["families"] = _families(clf)
        told["rule"] = clf.rule
        told["choices"] = clf.choices_
        told["calibration"] = clf.calibration_state_.removeprefix("calibration: ")
        evidence = _log_evidence(clf)
        if evidence is not None:
            told["evidence"] = f"{evidence:,.1f} nats: log P(rows learnt | families), parameters integrated out"
        told["ledger"] = _ledger(clf)
    told["written"] = f"deciban {about['deciban']}, numpy {about['numpy']}; {about['bytes']:,} bytes"
    if about["note"]:
        told["note"] = about["note"]
    return told


def _families(clf: Any) -> dict[str, str]:
    from deciban.cli.fit_report import family_name
    from deciban.families.product import blocks_of

    keys = [", ".join(key) if isinstance(key, tuple) else str(key) for key in clf.families_]
    blocks = zip(keys, blocks_of(clf.family_), clf.model_.reasons)
    return {key: f"{family_name(family)}: {reason.text}" for key, (family,), reason in blocks}


def _ledger(clf: Any) -> str:
    from deciban.model.ledger import Key

    if clf.ledger_ is None:
        return "none: unlearn checks what sums can show"
    key = "the public key" if clf.ledger_.key_id == Key.of(True).id else f"a key of its own, id {clf.ledger_.key_id}"
    return f"{len(clf.ledger_):,} rows, under {key}"


def _log_evidence(clf: Any) -> float | None:
    import numpy as np

    from deciban.families.abilities import HasEvidence, ability

    family = ability(clf.family_, HasEvidence)
    return None if family is None else float(np.sum(family.log_evidence(clf.stats_.family)))


def _parameters(clf: Any, level: float, wanted: list[str], path: str) -> list[Any]:
    from deciban.cli.parameters import parameters

    if not hasattr(clf, "model_"):
        return []
    lines = list(parameters(clf, level))
    for name in wanted:
        if not any(_of(line.feature, name) for line in lines):
            raise nearest(name, sorted({line.feature for line in lines}), "feature", path)
    return [line for line in lines if not wanted or any(_of(line.feature, name) for name in wanted)]


def _of(feature: str, name: str) -> bool:
    return feature == name or feature.startswith(f"{name}=")


def _table(lines: list[Any]) -> Any:
    import pyarrow as pa

    from deciban.cli.parameters import Parameter

    return pa.table({name: [getattr(line, name) for line in lines] for name in Parameter._fields})


def _show(terminal: Terminal, lines: list[Any], most: int, level: float) -> None:
    if not lines:
        return
    terminal.say()
    rows = [
        (
            line.feature,
            line.parameter,
            line.label,
            f"{line.mean:.4g}",
            f"[{line.low:.4g}, {line.high:.4g}]",
            "" if line.evidence is None else f"{line.evidence:+.1f}".replace("-", "−"),
        )
        for line in lines[:most]
    ]
    terminal.table(("feature", "parameter", "class", "mean", f"{level:.0%} interval", "decibans"), rows, (3, 5))
    if len(lines) > most:
        terminal.say(f"… and {len(lines) - most:,} more: --most, --feature NAME, or -o parameters.csv for all")
