"""Which features tell the classes apart, by what they say of rows that were learnt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deciban.cli.judging import judged
from deciban.cli.terminal import Terminal
from deciban.errors import DecibanError
from deciban.evaluate import Evaluation
from deciban.evidence.explanation import count, decibans_text
from deciban.evidence.scores import convert
from deciban.families.product import blocks_of
from deciban.read.columns import IGNORED
from deciban.read.source import Source
from deciban.read.tables import HEAD
from deciban.statistics import Array

MOST_ROWS = 400  # of a class that are looked at
SURE = 0.99  # right alone in this share of the rows: too good to be true
ONE_SIDED = 0.8  # share of the evidence that goes to one class
ENOUGH = 50  # rows from which that can be said


@dataclass(frozen=True)
class Telling:
    """What a feature says on average."""

    feature: str
    nats: float  # mean evidence a row, for its class over the nearest rival
    right: float  # share of the rows in which it alone favours the right class
    rows: int
    side: str | None = None  # the class it speaks for, where it is one

    def to_dict(self) -> dict[str, Any]:
        """For a program."""
        decibans = convert(self.nats, "decibans")
        return {"feature": self.feature, "decibans": decibans, "right": self.right, "for": self.side}


def most_telling(clf: Any, source: Source) -> list[Telling]:
    """Features by the evidence that they bring, most first; judged on some of the first rows of each class."""
    if len(clf.stats_.classes) < 2:
        return []
    classes = clf.stats_.classes
    sums: dict[str, Array] = {}  # evidence of each class's rows, then how many were right
    seen = 0
    for k, rows in _by_class(clf, source):
        told = clf.explain(rows, classes[k], classes[_rival(clf, rows, k)])
        n = len(told)
        seen += n
        finite = np.clip(told.parts, -50, 50)  # what is certain must not hide the rest
        for name, part in zip(told.names, finite.T):
            total = sums.setdefault(name, np.zeros(len(classes) + 1))
            total[k] += part.sum()
            total[-1] += (part > 0).sum()
    found = [
        Telling(name, float(total[:-1].sum() / seen), float(total[-1] / seen), seen, _side(total[:-1], classes))
        for name, total in sums.items()
    ]
    return sorted(found, key=lambda part: -abs(part.nats))


def _side(evidence: Array, classes: Sequence[Any]) -> str | None:
    """The class whose rows a feature speaks for, where it says next to nothing for the others."""
    best = int(evidence.argmax())
    return str(classes[best]) if evidence[best] > ONE_SIDED * np.abs(evidence).sum() else None


def giveaways(telling: list[Telling]) -> list[Telling]:
    """Features that need no company."""
    return [part for part in telling if part.right >= SURE and part.rows >= ENOUGH]


def _by_class(clf: Any, source: Source) -> Iterator[tuple[int, Any]]:
    """Some of the first rows of each class."""
    schema = clf.schema_
    table = next(source.batches(HEAD))
    bad: list[DecibanError] = []
    typed = schema.apply(table, bad)
    from deciban.read.labels import labelled_rows

    kept = np.setdiff1d(labelled_rows(table, str(schema.label)), [error.row for error in bad])
    labels = np.asarray(schema.labels(table.take(kept)))
    for k, name in enumerate(clf.stats_.classes):
        rows = kept[np.flatnonzero(labels == name)[:MOST_ROWS]]
        if len(rows):
            yield k, typed.take(rows)


def _rival(clf: Any, rows: Any, k: int) -> int:
    """The class that these rows are most likely to be taken for."""
    mean = clf.predict_proba(rows).mean(axis=0)
    mean[k] = -1.0
    return int(mean.argmax())


# -- fit report ----------
# What a person wants to know after a fit: what was learnt, how good it is, what looks wrong, and what to do next.

PLAIN = {"names", "numbers", "yes or no", "texts"}  # reasons that a column's kind says already
GAPPY = 0.5  # share of missing values that is worth a remark
FEW = 5  # rows of a class that are worth a remark
MOST = 12  # classes that are listed


@dataclass(frozen=True, eq=False)
class Report:
    """A fitted classifier, its evaluation on the rows it learnt, and what its features say."""

    clf: Any
    told: Evaluation
    telling: list[Telling]
    source: Source
    model: str

    @classmethod
    def of(cls, clf: Any, source: Source, model: str) -> Report:
        """Another pass over the rows: each is scored as if it had not been learnt."""
        told = judged(clf, source, str(clf.schema_.label), learnt=True)
        return cls(clf, told, most_telling(clf, source), source, model)

    @property
    def suspicions(self) -> list[str]:
        """What looks wrong in the data."""
        found = [f"column {c.name!r} is ignored: {c.reason}" for c in self.clf.schema_.columns if c.kind in IGNORED]
        found += [
            f"column {c.name!r} is missing in {c.missing / c.rows:.0%} of the rows"
            for c in self.clf.schema_.columns
            if c.kind not in IGNORED and c.rows and c.missing > GAPPY * c.rows
        ]
        found += [
            f"{part.feature!r} gives the label away: alone it is right in {part.right:.1%} of the rows. "
            "Is it known when you predict?"
            for part in giveaways(self.telling)
        ]
        rare = [f"{name} ({rows:g})" for name, rows in self._classes().items() if rows < FEW]
        if rare:
            found.append(f"classes with fewer than {FEW} rows: {', '.join(rare)}")
        ledger = self.clf.ledger_
        repeats = 0 if ledger is None else int((ledger.count - 1).sum())
        if repeats:
            said = "1 row repeats another" if repeats == 1 else f"{repeats:,} rows repeat others"
            found.append(f"{said} exactly, so that leaving one out leaves its twin in")
        return found

    @property
    def next_commands(self) -> list[str]:
        """What to type now."""
        endings = "".join(Path(self.source.name).suffixes[-2:])  # .csv, .csv.gz; none for a folder
        new, test = (f"new{endings}", f"test{endings}") if endings else ("NEW", "TEST")
        again = "" if self.source.name == "standard input" else f" {self.source.name} --row 1"
        return [
            f"deciban predict {self.model} {new}",
            f"deciban explain {self.model}{again}",
            f"deciban inspect {self.model}",
            f"deciban evaluate {self.model} {test}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """For a program."""
        return {
            "model": self.model,
            "rows": float(self.clf.stats_.rows.sum()),
            "classes": self._classes(),
            "columns": [
                {"name": c.name, "kind": c.kind, "reason": c.reason, "missing": c.missing, "of": c.rows}
                for c in self.clf.schema_.columns
            ],
            "families": self.clf.families_,
            "leave_one_out": self.told.to_dict(),
            "calibration": self.clf.calibration_state_.removeprefix("calibration: "),
            "telling": [part.to_dict() for part in self.telling[:10]],
            "suspicions": self.suspicions,
            "skipped": self.source.skipped.rows,
            "next": self.next_commands,
        }

    def show(self, terminal: Terminal) -> None:
        """For a person."""
        rows = float(self.clf.stats_.rows.sum())
        classes = sorted(self._classes().items(), key=lambda one: -one[1])
        shown = ", ".join(f"{name} {n:,.15g}" for name, n in classes[:MOST])
        more = f" and {len(classes) - MOST} more" if len(classes) > MOST else ""
        terminal.say(f"{self.model}: {rows:,.15g} rows, {count(len(classes), 'class', 'classes')} ({shown}{more})")
        terminal.head("Columns, and how each is modelled")
        self._show_columns(terminal)
        terminal.head("How good it is (exact leave-one-out: each row scored as if it had not been learnt)")
        terminal.say("\n".join(str(self.told).splitlines()[1:]))
        terminal.say(
            f"{self.clf.calibration_state_}; expected calibration error {self.told.expected_calibration_error:.3f}"
        )
        if self.telling:
            terminal.head("The most telling features (mean evidence a row for its class over the nearest rival)")
            self._show_telling(terminal)
        if self.suspicions:
            terminal.head("What looks wrong")
            for line in self.suspicions:
                terminal.say(f"- {line}", "yellow")
        terminal.head("Next")
        for line in self.next_commands:
            terminal.say(f"  {line}", "cyan")

    def _classes(self) -> dict[str, float]:
        return {str(name): float(rows) for name, rows in zip(self.clf.stats_.classes, self.clf.stats_.rows)}

    def _show_columns(self, terminal: Terminal) -> None:
        models = block_families(self.clf)
        rows = []
        for column in self.clf.schema_.columns:
            name, why = models.get(column.features[0], ("", "")) if column.features else ("ignored", "")
            gaps = f"{column.missing / column.rows:.1%}" if column.missing else ""
            reason = f"{column.reason}; {why}" if why and why not in PLAIN else column.reason
            rows.append((column.name, column.kind, gaps, name, reason))
        terminal.table(("column", "kind", "missing", "model", "why"), rows, (2,))

    def _show_telling(self, terminal: Terminal) -> None:
        longest = max(abs(part.nats) for part in self.telling) or 1.0
        rows = [
            (
                part.feature,
                decibans_text(part.nats),
                part.side or "",
                "█" * round(20 * abs(part.nats) / longest),
            )
            for part in self.telling[:10]
        ]
        terminal.table(("feature", "decibans", "mostly for", ""), rows, (1,))


def block_families(clf: Any) -> dict[str, tuple[str, str]]:
    """Feature → the family of its block in a word or two, and why."""
    blocks = zip(blocks_of(clf.family_), clf.model_.positions, clf.model_.reasons)
    return {str(clf.columns_[j]): (family_name(family), why.text) for (family,), at, why in blocks for j in at}


def family_name(family: Any) -> str:
    """A family without its numbers.

    >>> from deciban import Categorical, Gaussian
    >>> family_name(Gaussian("tied")), family_name(Categorical())
    ('Gaussian (tied)', 'Categorical')
    """
    name, choice = type(family).__name__, getattr(family, "structure", getattr(family, "by", None))
    return f"{name} ({choice})" if isinstance(choice, str) else name
