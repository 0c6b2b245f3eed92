"""The fit: choose → sum → calibrate, from rows in memory or from a stream of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from numpy.typing import ArrayLike

from deciban.families.abilities import Counts, HasCandidates, HasChoices, Refines, ability
from deciban.families.accumulators import accumulator
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Family, Rows, Rule, check_rule
from deciban.model.answers import LabelsLike, RowsLike
from deciban.model.calibration import Calibration
from deciban.model.candidates import chosen
from deciban.model.choose import FamiliesLike, gap_in_block, needs_all_rows, resolve, schema_reader
from deciban.model.judge import left_out_blocks
from deciban.model.ledger import Key, Ledger, learn_batch, ledger_of
from deciban.model.model import Lesson, Model, ModelStats, Reader, Reason, collect, lesson
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.batches import Batch, together
from deciban.read.batches import Rows as GivenRows
from deciban.read.files import is_place
from deciban.read.numbers import run_of_rows
from deciban.read.reservoir import Reservoir, chosen_rows
from deciban.read.tables import HEAD
from deciban.statistics import Members


@dataclass(frozen=True)
class Request:
    """The parameters of a fit, as a classifier has them."""

    families: FamiliesLike = "auto"
    rule: Rule = "mean"
    classes: Sequence[Any] | None = None
    calibrate: str | None = "auto"
    key: Key | None = None  # of the ledger; None for no ledger
    kinds: Mapping[Any, Any] | None = None


def fit(
    request: Request, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None
) -> tuple[Predictor, GivenRows]:
    """Choose what is open from the first rows, sum over all rows, and calibrate."""
    check_rule(request.rule)
    fitted = _fit(request, X, y, sample_weight, together=True)
    # a block whose columns vary together has a gap after the first rows: fit again without such blocks
    return fitted or _fit(request, X, y, sample_weight, together=False)  # type: ignore[return-value]


def _fit(
    request: Request, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None, together: bool
) -> tuple[Predictor, GivenRows] | None:
    """As `fit`; None if a later row has a gap in a block whose columns were found to vary together."""
    rule = request.rule
    given = GivenRows(X, y, sample_weight, schema_reader(request.families, request.kinds, is_place(X)))
    batches: Iterator[Batch] = given.batches(parts=True)
    first = next(batches)
    with first.located():
        readable_twice = together and not getattr(given.X, "stdin", False)
        family, blocks = resolve(request.families, first, given.schema, request.kinds, rule, readable_twice)
        if given.schema is not None and needs_all_rows(family):
            first, batches = _joined(first, batches), iter(())
        start = lesson(family, first, None, request.classes)
        second = next(batches, None)
    columns, method = first.table.columns, calibration_method(request, family)
    reasons = tuple(Reason(block.reason, block.detail) for block in blocks)
    with first.located():
        ledger = None if request.key is None else ledger_of(first, request.key)
        if second is None:
            chosen_family, stats = fit_rows(family, start.rows, start.members, columns, rule)
        else:
            sums = Accumulator(family, start, columns, rule, method is not None, ledger, request.key)
            del start, first  # frees their memory
    if second is not None:
        for batch in chain([second], batches):
            if gap_in_block(batch.table, blocks):
                batches.close()  # type: ignore[attr-defined]
                return None
            sums.add(batch)
        chosen_family, stats, ledger, sample = sums.family, sums.total(), sums.ledger, sums.sample()
        del sums, batch  # frees their memory
        start = None if sample is None else lesson(chosen_family, sample, stats.family, stats.classes)  # type: ignore[assignment]
    model = Model(chosen_family, stats, Reader(columns, given.schema), rule, family, reasons, ledger=ledger)
    predictor = Predictor(model, model.density())
    if method is not None and len(stats.rows) > 1:
        calibration = calibrate(predictor, start, method)
        predictor = Predictor(replace(model, calibration=calibration), predictor.density)
    return predictor, given


class Accumulator:
    """Sums of a stream of batches; mutable, with one owner.

    The choices are made on the first batch; the statistics of everything that was added are `total()`.
    """

    def __init__(
        self,
        family: Family[Any],
        first: Lesson,
        columns: Sequence[Any],
        rule: Rule,
        keep_sample: bool = False,
        ledger: Ledger | None = None,
        key: Key | None = None,
    ) -> None:
        self.columns, self.ledger, self.key = columns, ledger, key
        family = chosen(family, first.rows, first.members, rule)
        self.sums = accumulator(family, first.rows, first.members, columns)
        self.sums.choose(first.rows, first.members, rule)
        self.rows = _class_rows(first.members)
        self.reservoir = Reservoir() if keep_sample else None
        self._keep(first.batch)

    @property
    def family(self) -> Family[Any]:
        """The family with its choices made."""
        return self.sums.family

    def add(self, batch: Batch) -> None:
        """Add a batch; if it is refused, the sums stay as they were."""
        with batch.located():
            taken = lesson(self.family, batch, self.sums.known)
            self.sums.add(taken.rows, taken.members)
            self.rows = self.rows + _class_rows(taken.members)
            if self.ledger is not None:
                self.ledger = learn_batch(self.ledger, batch, self.columns, self.key)
        self._keep(batch)

    def total(self) -> ModelStats:
        """Return the statistics of everything that was added."""
        return replace(self.rows, family=self.sums.total())

    def sample(self) -> Batch | None:
        """Return the rows that were kept for calibration."""
        return None if self.reservoir is None else Batch(*self.reservoir.rows())

    def _keep(self, batch: Batch) -> None:
        if self.reservoir is not None:
            self.reservoir.add(batch.table, batch.labels, batch.weight)


def fit_rows(
    family: Family[Any], X: Rows, members: Members, columns: Sequence[Any], rule: Rule
) -> tuple[Family[Any], ModelStats]:
    """Choose from the first rows and sum over all rows in memory; one pass over the data."""
    n = len(members)
    family = chosen(family, X, members, rule)
    candidate = ability(family, HasCandidates)
    if candidate is not None and not candidate.open:
        stats = collect(family, X, members, columns)
        return family.choose(stats.family, None, rule), stats
    head = X if n <= HEAD else run_of_rows(X, 0, HEAD)
    first = members if n <= HEAD else members.take(slice(0, HEAD))
    stats = collect(family, head, first, columns)
    asked, family = family, family.choose(stats.family, (head, first), rule)
    if n > HEAD:
        stats = stats + collect(family, run_of_rows(X, HEAD, n), members.take(slice(HEAD, n)), columns)
        iterates = ability(family, Refines)
        if iterates is not None and family is not asked:
            refined, sums = iterates.refine(stats.family, X, members)
            return refined, replace(stats, family=sums)  # type: ignore[return-value]
    return family, stats


# -- calibration -----------------------------------------------------------------------------------------------------
def calibration_method(request: Request, family: Family[Any]) -> str | None:
    """Return the calibrator to fit; "auto" calibrates text, and mixes of families that deciban chose itself."""
    if request.calibrate != "auto":
        return request.calibrate
    if needs_all_rows(family):
        return None  # no row can be left out exactly
    parts = [ability(part, HasCandidates) for (part,) in blocks_of(family)]
    own = next((part.calibration for part in parts if part is not None), None)
    if not isinstance(family, Product):
        return own
    if not isinstance(request.families, str):
        return None if own is None else "blocks"
    return (own or "offsets") if len(parts) == 1 else "blocks"


def calibrate(predictor: Predictor, start: Lesson, method: str) -> Calibration:
    """Fit a calibrator on exact leave-one-out scores of learnt rows: all of them, or a sample of 20,000."""
    model = predictor.model
    at = chosen_rows(len(start.members))
    rows, members = start.rows, start.members
    if len(at) < len(members):
        rows, members = rows[at], members.take(at)
    scores = left_out_blocks(predictor, rows, members)
    lengths = block_lengths(model.family, rows)
    return Calibration.fit(method, scores, members.codes, lengths, model.classes, model.weight)


def automatic_method(model: Model) -> str:
    """Return the calibrator that suits the blocks of a model."""
    parts = blocks_of(model.family)
    if len(parts) > 1:
        return "blocks"
    return "offsets" if ability(parts[0][0], Counts) is None else "length"


def rechosen(model: Model, taken: Lesson) -> Family[Any]:
    """Make the choices again from rows and the model's sums; choices baked into the sums stay."""
    choices = ability(model.asked, HasChoices)
    asked: Any = model.asked if choices is None else choices.keep_choices(model.family, with_rows=True)
    asked = chosen(asked, taken.rows, taken.members, model.rule)
    return asked.choose(model.stats.family, (taken.rows, taken.members), model.rule)


def _joined(first: Batch, batches: Iterator[Batch]) -> Batch:
    return together([first, *batches])


def _class_rows(members: Members) -> ModelStats:
    """Return the rows of each class, without the family's sums."""
    return ModelStats({"class": members.classes}, members.weights(), {})
