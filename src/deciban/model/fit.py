"""The fit: choose → sum → calibrate, from rows in memory or from a stream of batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import DecibanError, InputError
from deciban.families import named
from deciban.families.abilities import Counts, HasCandidates, HasChoices, Refines, ability, needs_all_rows
from deciban.families.gaussian import Gaussian
from deciban.families.limits import any_beyond, limit_of, limits_of
from deciban.families.product import ASKED, Block, Expert, Product, as_key, blocks_of
from deciban.families.protocol import RULES, Family, Rows, Rule, accumulator, check_rule
from deciban.kernels.choice import one_thread, with_one_thread
from deciban.model.answers import LabelsLike, RowsLike
from deciban.model.calibration import BY_WORD, Calibration
from deciban.model.ledger import Key, Ledger, LedgerSums, ledger_of
from deciban.model.model import InteractionsLike, Lesson, Model, ModelStats, Reader, Reason, collect, lesson
from deciban.model.predictor import Predictor
from deciban.read.arrays import run_of_rows
from deciban.read.batches import Batch, Reservoir, chosen_rows, even_rows, together
from deciban.read.batches import Rows as GivenRows
from deciban.read.codes import encode_labels
from deciban.read.files import PLACES, open_source
from deciban.read.source import Source
from deciban.read.tables import HEAD, Table
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.read.schema import Schema

ROWS_OF_WORDS = 65_536  # rows in memory to which scales of words are fitted, at most; MOST_ROWS of a stream
FEW_MORE = 1.25  # up to this many times ROWS_OF_WORDS, all rows are used: selecting most of them takes longer
ROWS_TO_CALIBRATE = 50  # rows from which on arrays of few columns are calibrated; fewer hardly determine the calibrator
FEW_COLUMNS = 3  # columns up to which a model of few rows is hardly overconfident
ROWS_OF_COLUMN = 1024  # first rows of an array in which constant columns are looked for
MOST_KEPT = 10_000  # learnt rows that a predictor keeps for prediction sets; an even selection of more
KIND_FOR = {"Categorical": "category", "Text": "text"}  # what a column must be for a family; numbers otherwise

FamiliesLike: TypeAlias = Family[Any] | Mapping[Any, Any] | str  # a family, a dict of column → family, or "auto"


@dataclass(frozen=True)
class Request:
    """The parameters of a fit, as a classifier has them."""

    families: FamiliesLike = "auto"
    rule: Rule = "mean"
    classes: Sequence[Any] | None = None
    calibrate: str | None = "auto"
    key: Key | None = None  # of the ledger; None for no ledger
    kinds: Mapping[Any, Any] | None = None
    interactions: InteractionsLike = "auto"
    first_of_many: bool = False  # further rows follow: arrays are not calibrated, and no column is left out


def fit(
    request: Request, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None
) -> tuple[Predictor, GivenRows]:
    """Choose what is open from the first rows, sum over all rows, and calibrate."""
    check_request(request)
    # automatic choices alternate between small products and other work: see `with_one_thread`
    with one_thread(0) if isinstance(request.families, str) else nullcontext():
        fitted = _fit(request, X, y, sample_weight, vary_together=True)
        # a block whose columns vary together has a gap after the first rows: fit again without such blocks
        return fitted or _fit(request, X, y, sample_weight, vary_together=False)  # type: ignore[return-value]


def check_request(request: Request) -> None:
    """Refuse a rule or interactions that do not exist."""
    if request.rule not in RULES:
        check_rule(request.rule)
    if request.interactions != "auto":
        from deciban.model.experts import check_interactions

        check_interactions(request.interactions)


def _fit(
    request: Request, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None, vary_together: bool
) -> tuple[Predictor, GivenRows] | None:
    """Fit as `fit` does; None if a later row has a gap in a block whose columns were found to vary together."""
    kinds = request.kinds
    if isinstance(X, PLACES):
        X = open_source(X)
        kinds = {**dict.fromkeys(X.texts, "text"), **(kinds or {})}
    given = GivenRows(X, y, sample_weight, schema_reader(request.families, kinds, isinstance(X, PLACES)))
    batches: Iterator[Batch] = given.batches(parts=True)
    first, second = next(batches), next(batches, None)
    with first.table.located():
        n = 0 if isinstance(given.X, Source) else len(given.X)
        readable_twice = vary_together and not getattr(given.X, "stdin", False)
        opening = opened(request, first, given.schema, readable_twice)
        family, columns = opening.family, first.table.columns
        if second is not None and needs_all_rows(family):
            first, second = together([first, second, *batches]), None
        start = lesson(family, first, None, request.classes)
        ledger = None if request.key is None else ledger_of(first, request.key)
        if second is None:
            given_rows = start.rows, start.members, columns, request.rule
            chosen_family, stats = fit_rows(family, *given_rows, opening.method)
        else:
            keep_sample, given_rule = opening.method is not None, request.rule
            hashes = None if ledger is None else LedgerSums(ledger, columns, request.key)
            sums = Accumulator(family, start, columns, given_rule, opening.by_word, keep_sample, hashes)
            del start, first  # frees their memory
    if second is not None:
        for batch in chain([second], batches):
            if gap_in_block(batch.table, opening.together):
                batches.close()  # type: ignore[attr-defined]
                return None
            sums.add(batch)
        chosen_family, stats, sample = sums.family, sums.total(), sums.sample()
        ledger = None if hashes is None else hashes.ledger()
        del sums, batch  # frees their memory
        start = None if sample is None else lesson(chosen_family, sample, stats.family, stats.classes)  # type: ignore[assignment]
    predictor = finished(request, opening, chosen_family, stats, Reader(columns, given.schema), start, ledger)
    if n:  # rows in memory
        predictor = replace(predictor, learnt=given if n <= MOST_KEPT else given.at(even_rows(n, MOST_KEPT)))
    return predictor, given


def fit_lesson(request: Request, batch: Batch, reader: Reader, encoded: Callable[[Family[Any]], Lesson]) -> Predictor:
    """Choose, sum and calibrate as `fit` does, from rows in memory that are typed already.

    `encoded(family)` gives the rows of the batch as the family takes them.
    """
    opening = opened(request, batch, reader.schema)
    start = encoded(opening.family)
    given = start.rows, start.members, reader.columns, request.rule
    family, stats = fit_rows(opening.family, *given, opening.method)
    return finished(request, opening, family, stats, reader, start)


@dataclass(frozen=True, eq=False)
class Opening:
    """What the first rows of a fit decide before rows are summed."""

    family: Family[Any]  # as asked for: choices that rows or sums make are open
    blocks: Sequence[Block]  # with the reasons for their families
    method: str | None  # of calibration

    @property
    def by_word(self) -> bool:
        """Whether words will have scales of their own."""
        return self.method == BY_WORD

    @property
    def together(self) -> frozenset[Any]:
        """The columns that were found to vary together, so that no value of them may be missing."""
        return frozenset(name for block in self.blocks if block.together for name in block.columns)


def opened(request: Request, first: Batch, schema: Schema | None, together: bool = True) -> Opening:
    """Return what the first rows decide; with `together`, columns may vary together."""
    given = request.families, first, schema, request.kinds, request.rule, together
    family, blocks = asked_family(*given, keep_constant=request.first_of_many)
    family = with_experts(family, request, first, schema)
    return Opening(family, blocks, calibration_method(request, family, first.table.shape))


def finished(
    request: Request,
    opening: Opening,
    family: Family[Any],
    stats: ModelStats,
    reader: Reader,
    start: Lesson | None,
    ledger: Ledger | None = None,
) -> Predictor:
    """Return the predictor of the sums of all rows, calibrated on `start`: learnt rows, or a sample of them."""
    reasons = tuple(Reason(block.reason, block.detail) for block in opening.blocks)
    chosen_on = float(stats.rows.sum())
    model = Model(family, stats, reader, request.rule, opening.family, reasons, ledger=ledger, chosen_on=chosen_on)
    return calibrated(model, start, opening.method, request.calibrate == "auto")


def fit_batch(request: Request, batch: Batch, schema: Schema | None) -> Predictor:
    """Fit rows that were read already, typed by the schema where there is one."""
    reader = Reader(batch.table.columns, schema)
    return fit_lesson(request, batch, reader, lambda family: lesson(family, batch, None, request.classes))


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
        by_word: bool = True,
        keep_sample: bool = False,
        ledger: LedgerSums | None = None,
    ) -> None:
        from deciban.model.candidates import chosen

        self.ledger = ledger
        family = chosen(family, first.rows, first.members, rule, by_word)
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
                self.ledger.add(batch)
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
    family: Family[Any], X: Rows, members: Members, columns: Sequence[Any], rule: Rule, method: str | None = None
) -> tuple[Family[Any], ModelStats]:
    """Choose from the first rows and sum over all rows in memory; one pass over the data.

    The model will be calibrated by the method, on scores of rows that are learnt.
    """
    n = len(members.codes)
    if isinstance(family, Product) or ability(family, HasCandidates) is not None:
        from deciban.model.candidates import chosen  # lazy, here and below: a given Gaussian has no such choices

        family = chosen(family, X, members, rule, method == BY_WORD)
        if method is not None:
            read_once(family, X, n, rows_to_calibrate(method, n))
        candidate = ability(family, HasCandidates)
        if candidate is not None and not candidate.open:
            stats = collect(family, X, members, columns)
            return family.choose(stats.family, None, rule), stats
    if n > HEAD and _chooses_nothing(family, X, members, rule):
        return family, collect(family, X, members, columns)
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


def read_once(family: Family[Any], X: Rows, n: int, at: Array) -> None:
    """Read the rows that are summed and later scored, if they are most of the n rows, so that they are read once."""
    if 2 * len(at) < n:
        return
    for part, rows in blocks_of(family, X):
        reads = ability(part, HasCandidates)
        if reads is not None:
            reads.read(rows if len(at) == n else rows[at])


def _chooses_nothing(family: Family[Any], X: Rows, members: Members, rule: Rule) -> bool:
    """Whether no choice of the family is open: given the sums of one row, it returns itself."""
    try:
        given = family.choose(family.collect(run_of_rows(X, 0, 1), members.take(slice(0, 1))), None, rule)
    except DecibanError:  # a choice needs rows
        return False
    return all(one is other for (one,), (other,) in zip(blocks_of(family), blocks_of(given)))


# -- what the user asked for -----------------------------------------------------------------------------------------
def schema_reader(
    families: FamiliesLike, kinds: Mapping[Any, Any] | None, from_file: bool
) -> Callable[[Table, str | None], Schema] | None:
    """Return how the columns of a frame or file are typed; None where families were named for a table in memory."""
    automatic = isinstance(families, str) and families == "auto"
    if not automatic and not from_file:
        return None
    from deciban.read.schema import Schema

    if automatic:
        return lambda table, label: _automatic_schema(table, label, kinds or {})
    families = families.families if isinstance(families, Product) else families
    if isinstance(families, Mapping):
        return lambda table, label: Schema.infer(table, label, _kinds(families))
    wanted = KIND_FOR.get(type(families).__name__, "number")
    return lambda table, label: Schema.infer(
        table, label, {str(name): wanted for name in table.columns if str(name) != label}
    )


def _automatic_schema(table: Table, label: str | None, kinds: Mapping[Any, Any]) -> Schema:
    """Return the schema of a table whose columns are examined; a number as kind of the label splits it into ranges."""
    from deciban.read.schema import Schema

    bins = kinds.get(label)
    others = {key: value for key, value in kinds.items() if key != label}
    return Schema.infer(table, label, _kinds(others), bins if isinstance(bins, int) else None)


def asked_family(
    families: FamiliesLike,
    first: Batch,
    schema: Schema | None,
    kinds: Mapping[Any, Any] | None,
    rule: Rule,
    together: bool = True,
    keep_constant: bool = False,
) -> tuple[Family[Any], list[Block]]:
    """Return the family that `families` means for these first rows, and its blocks with their reasons.

    Constant columns of an array are left out, unless `keep_constant`.
    """
    table = first.table
    if isinstance(families, Family):
        return families, [Block((), families, ASKED)]
    if isinstance(families, Mapping):
        product = Product({key: _family(value) for key, value in families.items()})
        return product, [Block(key, family, ASKED) for key, family in zip(product.keys, product.families.values())]
    if isinstance(families, str) and families == "auto":
        if schema is None:
            labelled = first.labels is not None
            block = _block_of_array(table, labelled)
            if keep_constant or table.texts or table.sparse:
                return block.family, [block]
            varying = _varying_columns(table)
            if len(varying) in (0, table.shape[1]):
                return block.family, [block]
            columns = tuple(table.columns[j] for j in varying)
            block = replace(_block_of_array(Table.of(table.pick(varying)), labelled), columns=columns)
            block = replace(block, reason=f"{block.reason}; {_constant_columns(table.shape[1] - len(varying))}")
            return Product({columns: block.family}), [block]
        features = {key: value for key, value in (kinds or {}).items() if key != schema.label}
        asked = {key: _family(value) for key, value in features.items() if not _is_kind(value)}
        from deciban.model.choose import choose_blocks

        chosen_blocks = choose_blocks(first, schema, asked, rule, together)
        blocks = [block for block in chosen_blocks if not block.expert]
        keys = [block.columns[0] if len(block.columns) == 1 else block.columns for block in blocks]
        beside = [block for block in chosen_blocks if block.expert]
        experts = {
            _expert_name(block): Expert(block.columns, block.family, len(block.columns) > 1, alone=True)
            for block in beside
        }
        return Product({key: block.family for key, block in zip(keys, blocks)}, experts), blocks
    raise InputError(
        f"families={families!r} is neither a family such as Gaussian(), nor a dict of column → family, nor 'auto'."
    )


def with_experts(family: Family[Any], request: Request, first: Batch, schema: Schema | None) -> Family[Any]:
    """Add experts to a product that deciban chose itself, or where interactions are asked for."""
    chosen_here = isinstance(request.families, str)
    if schema is None or not isinstance(family, Product) or not (chosen_here or request.interactions != "auto"):
        return family
    if request.calibrate is None or needs_all_rows(family):
        return replace(family, experts={})  # experts are parts of calibrated scores
    from deciban.model.experts import table_experts

    K = len(encode_labels(first.labels, len(first.table))[0])
    more = table_experts(first.table, first.weight, schema, K, request.interactions)
    return replace(family, experts={**more, **family.experts})


def _expert_name(block: Block) -> str:
    """Return the name of a block beside others: "together", or its only column."""
    return "together" if len(block.columns) > 1 else f"{block.columns[0]} alone"


def gap_in_block(table: Table, together: Collection[Any]) -> bool:
    """Whether a value is missing in one of the columns that were found to vary together."""
    return any(np.isnan(table.pick([j])).any() for j, name in enumerate(table.columns) if name in together)


def by_type(families: FamiliesLike, table: Table) -> Family[Any]:
    """Return the family of rows without labels: a frame's columns by their types."""
    if not (table.framed and isinstance(families, str) and families == "auto"):
        return asked_family(families, Batch(table, None), None, None, "mean", keep_constant=True)[0]
    from deciban.families.bernoulli import Bernoulli
    from deciban.families.categorical import Categorical

    kinds = [table.kind(j) for j in range(table.shape[1])]
    gaps = [kind == "number" and _has_gaps(table.pick([j])) for j, kind in enumerate(kinds)]
    wanted: list[tuple[str, bool, Family[Any]]] = [
        ("number", False, Gaussian("auto")),
        ("number", True, Gaussian("diagonal")),
        ("yes/no", False, Bernoulli()),
        ("category", False, Categorical()),
    ]
    found: dict[Any, Any] = {}
    for kind, gappy, family in wanted:
        columns = tuple(table.columns[j] for j in range(len(kinds)) if kinds[j] == kind and gaps[j] == gappy)
        if columns:
            found[columns] = family
    return next(iter(found.values())) if len(found) == 1 and kinds[0] == "number" else Product(found)


def _block_of_array(table: Table, labelled: bool) -> Block:
    """Return the family of an array; in rows with labels, absurd numbers count as missing, also those learnt later."""
    if table.texts:
        from deciban.text import Text

        return Block((), Text(), "texts: words, their transform and pseudo-count by leave-one-out log loss")
    if table.sparse:
        from deciban.families.multinomial import Multinomial

        most = limit_of(table.pick().data) if labelled else None
        return Block((), Multinomial(limit=most), "sparse input: counts of events")
    rows = table.pick()
    limit = limits_of(rows)
    absurd = limit is not None and any_beyond(rows, limit)
    if not labelled and not absurd:
        limit = None
    if _has_gaps(rows):
        return Block((), Gaussian("diagonal", limit=limit), "numbers with gaps: one Gaussian a column")
    why = (
        f"numbers: one Gaussian block{', absurd numbers as missing' * absurd}; its structure by leave-one-out log loss"
    )
    return Block((), Gaussian("auto", limit=limit), why)


def _varying_columns(table: Table) -> list[int]:
    """Return the positions of the columns of an array that hold different values; a missing value is one."""
    rows = table.pick()
    if rows.dtype.kind not in "fiub" or not len(rows):
        return list(range(table.shape[1]))
    head = np.flatnonzero((rows[:ROWS_OF_COLUMN] == rows[0]).all(axis=0))
    constant = {int(j) for j in head if (rows[:, j] == rows[0, j]).all()}
    return [j for j in range(table.shape[1]) if j not in constant]


def _constant_columns(count: int) -> str:
    return "a constant column is ignored" if count == 1 else f"{count:,} constant columns are ignored"


def _family(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return named(value)


def _is_kind(value: object) -> bool:
    from deciban.read.columns import DECLARABLE

    return isinstance(value, str) and value in DECLARABLE


def _kinds(asked: Mapping[Any, Any]) -> dict[str, str]:
    """Return the kinds that columns must have for the families or kinds asked for."""
    found: dict[str, str] = {}
    for key, value in asked.items():
        kind = value if _is_kind(value) else KIND_FOR.get(type(_family(value)).__name__, "number")
        found |= dict.fromkeys([str(name) for name in as_key(key)], kind)
    return found


def _has_gaps(X: Any) -> bool:
    return X.dtype.kind == "O" or (X.dtype.kind == "f" and bool(np.isnan(X).any()))


# -- calibration -----------------------------------------------------------------------------------------------------
def calibration_method(request: Request, family: Family[Any], shape: tuple[int, int]) -> str | None:
    """Return the calibrator to fit; "auto" calibrates text, and families that deciban chose itself.

    `shape` is that of the table: few columns of few rows of an array are not calibrated.
    """
    if request.calibrate != "auto":
        return request.calibrate
    if needs_all_rows(family):
        return None  # no row can be left out exactly
    if not isinstance(family, Product):
        offers = ability(family, HasCandidates)
        if offers is not None:
            return offers.calibration
        chosen_here = isinstance(request.families, str) and not request.first_of_many
        calibrated = shape[0] >= ROWS_TO_CALIBRATE or shape[1] > FEW_COLUMNS
        return _method_of_block(family) if chosen_here and calibrated else None
    parts = [ability(part, HasCandidates) for (part,) in blocks_of(family)]
    own = next((part.calibration for part in parts if part is not None), None)
    if not isinstance(request.families, str):
        return None if own is None else "blocks"
    return (own or "offsets") if len(parts) == 1 and not family.experts else "blocks"


def calibrated(model: Model, start: Lesson | None, method: str | None, automatic: bool) -> Predictor:
    """Return the predictor of a model, calibrated on learnt rows unless there is no method or only one class."""
    predictor = Predictor(model, model.density())
    if method is None or start is None or len(model.stats.rows) < 2:
        return predictor
    calibration = calibrate(predictor, start, method, automatic)
    return Predictor(replace(model, calibration=calibration), predictor.density)


@with_one_thread
def calibrate(predictor: Predictor, start: Lesson, method: str, automatic: bool) -> Calibration:
    """Fit a calibrator on leave-one-out scores of all rows, or of a sample."""
    at = rows_to_calibrate(method, len(start.members))
    if len(at) < len(start.members):
        start = Lesson(start.batch, start.rows[at], start.members.take(at))
    from deciban.model.cross_fit import fit_calibration

    return fit_calibration(predictor, start, method, automatic)


def rows_to_calibrate(method: str, n: int) -> Array:
    """Return the positions of the rows of n whose leave-one-out scores a calibrator is fitted to."""
    if method != BY_WORD:
        return chosen_rows(n)
    return np.arange(n) if n <= FEW_MORE * ROWS_OF_WORDS else chosen_rows(n, ROWS_OF_WORDS)


def automatic_method(model: Model) -> str:
    """Return the calibrator that suits the blocks of a model."""
    parts = blocks_of(model.family)
    if len(parts) > 1 or (isinstance(model.family, Product) and model.family.experts):
        return "blocks"
    offers = ability(parts[0][0], HasCandidates)
    return _method_of_block(parts[0][0]) if offers is None else offers.calibration


def _method_of_block(family: Family[Any]) -> str:
    """Return the calibrator that suits a single block without candidates."""
    return "offsets" if ability(family, Counts) is None else "length"


def rechosen(model: Model, taken: Lesson) -> Family[Any]:
    """Make the choices again from rows and the model's sums; choices baked into the sums stay."""
    from deciban.model.candidates import chosen

    choices = ability(model.asked, HasChoices)
    asked: Any = model.asked if choices is None else choices.keep_choices(model.family, with_rows=True)
    asked = chosen(asked, taken.rows, taken.members, model.rule)
    return asked.choose(model.stats.family, (taken.rows, taken.members), model.rule)


def _class_rows(members: Members) -> ModelStats:
    """Return the rows of each class, without the family's sums."""
    return ModelStats({"class": members.classes}, members.weights(), {})
