"""The published model, which readers of a service use, and the names with which its classes are shown.

    f(x | A or B) = Σ_j P(j) f(x|j) / Σ_j P(j)        j in the classes that are shown as one

Renamed and merged classes are a view. The sums of the model, and the digests in its ledger, keep the labels that rows
were learnt with. Renaming and merging therefore change no sum, and are undone exactly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from deciban.errors import InputError, UnknownLabelError, shortlist
from deciban.evidence.scores import log_probability
from deciban.families.product import blocks_of
from deciban.kernels import log_sum_exp
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.model.row_reader import RowReader, checked_text, kind_of
from deciban.read.schema import Schema
from deciban.statistics import Array, Ragged

# -- names of classes --------------------------------------------------------------------------------------------------
Label: TypeAlias = str | int
MOST_LABEL = 200  # characters in the name of a class
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")  # less than 2**63
INVISIBLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # controls, line ends, directions


@dataclass(frozen=True)
class ClassNames:
    """Names with which classes of the model are shown, for those whose name is not their label.

    >>> names = ClassNames().shown_as("spam", "junk")
    >>> names.of(["ham", "spam"])
    ('ham', 'junk')
    """

    shown: tuple[tuple[str, str], ...] = ()  # label in the model, as text → name

    def name(self, label: Any) -> str:
        """Return the name of a class of the model."""
        return dict(self.shown).get(str(label), str(label))

    def of(self, classes: Sequence[Any]) -> tuple[str, ...]:
        """Return the names that are shown, in the order of the model's classes; a merged class occurs once."""
        return tuple(dict.fromkeys(self.name(label) for label in classes))

    def shown_as(self, was: str, now: str) -> ClassNames:
        """Return the names after one class of the model is renamed."""
        kept = {**dict(self.shown), was: now}
        return ClassNames(tuple((label, name) for label, name in kept.items() if label != name))

    def renamed(self, was: str, now: str, classes: Sequence[Any]) -> ClassNames:
        """Return the names after a class is renamed; with the name of another class, both are shown as one."""
        labels = [str(label) for label in classes if self.name(label) == was]
        if not labels:
            raise InputError(
                f"there is no class {was!r}.", label=was, remedy=f"Give one of {', '.join(self.of(classes))}."
            )
        names = self
        for label in labels:
            names = names.shown_as(label, now)
        return names

    def label(self, name: str, classes: Sequence[Any]) -> str | None:
        """Return the label of the model for lessons under a shown name; None if no class has this name."""
        if str(name) in {str(label) for label in classes} and self.name(name) == str(name):
            return str(name)
        return next((str(label) for label in classes if self.name(label) == str(name)), None)


@dataclass(frozen=True, eq=False)
class Grouping:
    """The classes of a model grouped by their shown names."""

    classes: Sequence[Any]  # (K,) of the model
    names: tuple[str, ...]  # (G,) shown
    group: Array = field(repr=False)  # (K,) position in `names`

    @classmethod
    def of(cls, names: ClassNames, classes: Sequence[Any]) -> Grouping:
        """Group the classes by their shown names."""
        shown = names.of(classes)
        place = {name: at for at, name in enumerate(shown)}
        return cls(classes, shown, np.array([place[names.name(label)] for label in classes], dtype=np.intp))

    @property
    def plain(self) -> bool:
        """Whether no classes are merged."""
        return len(self.names) == len(self.classes)

    def sums(self, values: Array) -> Array:
        """Add values (K,) of the classes that are shown as one, (G,)."""
        return np.bincount(self.group, values, len(self.names))

    def likelihood(self, likelihood: Array, weight: Array) -> Array:
        """Return log-likelihoods (n, G) of the shown classes; `weight` (K,) is the prior within each."""
        if self.plain:
            return likelihood
        total = self.sums(weight)[self.group]
        even = 1 / np.bincount(self.group)[self.group]
        share = np.divide(weight, total, out=even, where=total > 0)
        joint = likelihood + log_probability(share)
        made = np.empty((len(likelihood), len(self.names)))
        for g in range(len(self.names)):
            made[:, g] = log_sum_exp(np.ascontiguousarray(joint[:, self.group == g]))
        return made

    def strongest(self, likelihood: Array, weight: Array, group: int) -> Array:
        """Return for each row the most probable class of the model within a shown class, (n,) positions."""
        members = np.flatnonzero(self.group == group)
        joint = likelihood[:, members] + log_probability(np.maximum(weight[members], 1e-300))
        return members[joint.argmax(axis=1)]


# -- labels of JSON ----------------------------------------------------------------------------------------------------
def class_label(given: Any, classes: Sequence[Any], schema: Schema | None, *, new: bool) -> Label:
    """Return the class of the model that a label from JSON names; with `new`, unknown names are allowed.

    >>> class_label("1", [0, 1], None, new=False)
    1
    """
    if isinstance(given, bool) or not isinstance(given, str | int) or (isinstance(given, str) and not given.strip()):
        raise UnknownLabelError(
            f"{kind_of(given)} is not the name of a class.", remedy="Give a class as a text or as a whole number."
        )
    if isinstance(given, str) and len(given) > MOST_LABEL:
        raise UnknownLabelError(
            f"the name of a class has {len(given)} characters; at most {MOST_LABEL} are allowed.",
            remedy="Give a shorter name.",
        )
    if isinstance(given, int) and abs(given) >= 2**63:
        raise UnknownLabelError("the number of a class is too large.", remedy="Give a smaller number, or a text.")
    checked_text("label", str(given), 0)
    for name in classes:
        if str(name) == str(given):
            return name
    if not new or (schema is not None and schema.ranges is not None):
        raise UnknownLabelError(
            f"the model has no class {str(given)!r}; it has {shortlist([repr(str(name)) for name in classes], 10)}.",
            label=given,
            remedy="Correct the spelling, or teach the class first.",
        )
    if INVISIBLE.search(str(given)):
        raise UnknownLabelError(
            f"the name {str(given)!r} of a class holds a control character.",
            remedy="Remove the character, for example a line end.",
        )
    if classes and all(isinstance(name, int) for name in classes):
        if isinstance(given, int) or WHOLE_NUMBER.fullmatch(given):
            return int(given)
        raise UnknownLabelError(
            f"the class {str(given)!r} is a text, but the classes of this model are whole numbers.",
            label=given,
            remedy="Give a whole number.",
        )
    return str(given)


# -- the published model -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Published:
    """The model that answers requests, with its density, the names of its classes, and its last lesson."""

    predictor: Predictor
    version: int  # id of the last lesson that it contains
    names: ClassNames
    offered: Mapping[Any, float]  # label → weight of learnt rows that were offered as unsure
    reader: RowReader
    prior: Any  # parameters of the classifier
    cost: Any

    @property
    def model(self) -> Model:
        """The model."""
        return self.predictor.model

    @property
    def grouping(self) -> Grouping:
        """The classes as they are shown."""
        return Grouping.of(self.names, self.model.classes)

    @property
    def counts(self) -> Array:
        """(K,) weights of the classes, from which the class prior is computed: without offered rows."""
        offered = np.array([self.offered.get(label, 0.0) for label in self.model.classes])
        rows = np.asarray(self.model.stats.rows, dtype=float)
        left = np.maximum(rows - offered, 0.0)
        return left if left.sum() > 0 else rows


def describe_model(published: Published) -> dict[str, Any]:
    """Return the classes, columns and state of the model, for the page and for clients."""
    model, reader, grouping = published.model, published.reader, published.grouping
    schema = reader.reader.schema
    counts, trusted = (grouping.sums(each).tolist() for each in (model.stats.rows, published.counts))
    total = sum(trusted) or 1.0
    kinds = {column.name: column.kind for column in schema.columns} if schema is not None else {}
    reasons = {column.name: column.reason for column in schema.columns} if schema is not None else {}
    known = _category_names(model)
    return {
        "version": published.version,
        "form": reader.form,
        "columns": [
            {
                "name": name,
                "kind": kinds.get(name, "text" if reader.form == "text" else "number"),
                "names": known.get(name),
                "values": reasons.get(name),
            }
            for name in reader.columns[:1000]
        ],
        "given": list(map(str, reader.reader.given[:1000])) or list(reader.columns[:1000]),
        "label": None if schema is None else schema.label,
        "classes": [
            {"name": name, "rows": rows, "prior": share / total}
            for name, rows, share in zip(grouping.names, counts, trusted)
        ],
        "rows": float(model.weight),
        "lessons": published.version,
        "ledger": model.ledger is not None,
        "calibration": "none" if model.calibration is None else model.calibration.state(model.weight),
    }


def _category_names(model: Any, most: int = 200) -> dict[str, list[str]]:
    """Return the names that columns of categories have had, by column."""
    found: dict[str, list[str]] = {}
    for at, (_, sums) in zip(model.positions, blocks_of(model.family, model.stats.family)):
        axis = getattr(sums, "labels", {}).get("category")
        if isinstance(axis, Ragged):
            for j, part in zip(at, axis.parts):
                names = [str(name) for name in list(part.names)[:most]]
                found[str(model.reader.columns[j])] = names
    return found
