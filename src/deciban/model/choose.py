"""Families for the columns of a table: which, and why.

A column of numbers gets the family with the highest leave-one-out density of its class. All candidates are compared in
one measure: values that were rounded by the probability of the cell they stand for (else a density concentrated on a
repeated value could be as high as it likes), others by density. Powers and logarithms include their slope, bins divide
by their width.

Whether numbers without gaps are one Gaussian block, in which columns may vary together, changes decisions; so labels
decide, by the log loss of calibrated leave-one-out scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from deciban.errors import DecibanError, InputError
from deciban.evidence.scores import convert, log_posterior
from deciban.families.abilities import HasCandidates, Refines, ability
from deciban.families.gaussian import Gaussian
from deciban.families.product import Block, Key, Product, as_key
from deciban.families.protocol import Density, Family, Rule
from deciban.kernels.choice import SMALL_WORK
from deciban.model.calibration import Calibration
from deciban.read.batches import Batch
from deciban.read.labels import encode_labels
from deciban.read.numbers import grid_of
from deciban.read.reservoir import chosen_rows
from deciban.read.tables import Columns, Table
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.read.schema import Schema

BINS = (5, 10, 20, 40)
GAIN = 2.0  # nats over all rows by which a richer candidate must be better
ROWS_PER_BIN = 4  # and class: fewer do not show its height
POINTS = (np.arange(9) - 4) / 9  # positions in a cell at which a density is averaged; the one in the middle is 0
JUDGED = 4096  # of the first rows, on which families are compared
WIDEST = 40  # columns of a block
DISTINCT = 10  # values that a column of a block must have: fewer are steps, not measurements
ROWS_PER_COLUMN = 5  # of a block: fewer do not show how its columns vary together
KIND_FOR = {"Categorical": "category", "Text": "text"}  # what a column must be for a family; numbers otherwise
ASKED = "named by you"

FamiliesLike: TypeAlias = Family[Any] | Mapping[Any, Any] | str  # a family, a dict of column → family, or "auto"


# -- one column of numbers -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Choice:
    """The family that fits a column best, and by how much."""

    family: Family[Any]
    name: str
    decibans: float  # over the runner-up, all rows together
    runner_up: str
    rows: int  # compared

    @property
    def reason(self) -> str:
        """What was chosen, for people."""
        why = "fits best" if self.decibans >= 0 else f"fits as well as {self.runner_up} and is simpler"
        return f"{self.name} ({why})"

    @property
    def comparison(self) -> str:
        """By how much, for people who ask."""
        return f"{self.decibans:+,.0f} decibans over {self.runner_up} in {self.rows:,} rows".replace("-", "−")


def choose_family(x: Array, members: Members, kind: str) -> Choice:
    """Choose the candidate with the highest leave-one-out density; of equally good ones, the simpler.

    >>> rng = np.random.default_rng(0)
    >>> members = Members.hard(rng.integers(0, 2, 500), 2)
    >>> choose_family(np.exp(rng.normal(3.0, 1.0, 500)), members, "number").name
    'log-normal'
    """
    X = np.asarray(x, dtype=float)[:, None]
    seen = x[~np.isnan(x)]
    grid = grid_of(seen) if len(seen) else None
    scores = {}
    families = candidates(X, members, kind)
    for name, family in families.items():
        try:
            scores[name] = density_score(family, X, members, grid)
        except DecibanError:  # not a candidate for these rows
            continue
    best = next(iter(scores))
    for name in scores:
        if scores[name] > scores[best] + GAIN:
            best = name
    second = max((name for name in scores if name != best), key=lambda name: scores[name], default=best)
    gain = float(convert(scores[best] - scores[second], "decibans"))
    return Choice(families[best], best, gain, second, len(seen))


def candidates(X: Array, members: Members, kind: str) -> dict[str, Family[Any]]:
    """Return the families that a column of numbers may have, the simpler ones first."""
    from deciban.families.binned import Binned
    from deciban.families.poisson import Poisson
    from deciban.families.transformed import Transformed

    seen = X[~np.isnan(X)]
    found: dict[str, Family[Any]] = {"normal": Gaussian("diagonal")}
    if kind == "number" and len(seen) and seen.min() > 0:
        found["log-normal"] = Transformed("log", outside="gap")  # a zero in later rows counts as missing
    found["normal after a power transform"] = Transformed("yeo-johnson")
    if kind == "count":
        found["Poisson"] = Poisson()
    bins = best_bins(X, members)
    found[f"split into {bins} ranges"] = Binned(bins)
    return found


def best_bins(X: Array, members: Members) -> int:
    """Return how many bins predict the labels best, each row left out in turn; of equally good numbers the least."""
    from deciban.families.binned import Binned

    best, least, label_loss, K = BINS[0], np.inf, LabelLoss(members), members.K
    for bins in BINS:
        if bins > BINS[0] and (bins >= 2 * len(np.unique(X)) or bins * ROWS_PER_BIN * K > len(X)):
            break
        family = Binned(bins)
        stats: Any = family.collect(X, members)
        loss = label_loss(family.leave_one_out(stats, X, members, "mean"))
        if loss < least - GAIN / len(X):
            best, least = bins, loss
    return best


class LabelLoss:
    """The mean log loss of the labels, by left-out scores and the proportions of the classes."""

    def __init__(self, members: Members) -> None:
        self.codes, self.weight = members.codes, members.row_weights()
        with np.errstate(divide="ignore"):
            self.log_prior = np.log(members.weights()) - np.log(self.weight.sum())

    def __call__(self, scores: Array) -> float:
        """Return the loss of scores, shape (n, K)."""
        with np.errstate(divide="ignore"):
            posterior = log_posterior(scores, self.log_prior)
        return float(np.average(-posterior[np.arange(len(scores)), self.codes], weights=self.weight))


def density_score(family: Family[Any], X: Array, members: Members, grid: float | None) -> float:
    """Return Σ w · log density, or probability of the cell, of each value in its own class without itself."""
    from deciban.families.binned import Binned
    from deciban.families.poisson import Poisson

    stats: Any = family.collect(X, members)
    family = family.choose(stats, (X, members))
    own = np.arange(len(X)), members.codes
    density = family.estimate(stats, "mean")
    each = family.leave_one_out(stats, X, members, "mean", density)[own] + np.reshape(density.log_base(X), -1)
    if grid is not None and not isinstance(family, Poisson):
        inside = 0.0 if isinstance(family, Binned) else _within_cell(density, X, own, grid)  # no cell crosses an edge
        each = np.minimum(each + np.log(grid) + inside, 0.0)
    seen = ~np.isnan(X[:, 0])
    return float(members.row_weights()[seen] @ each[seen])


def _within_cell(density: Density, X: Array, own: tuple[Array, Array], grid: float) -> Array:
    """Return the log of the mean density over a cell, relative to the density at its middle."""

    def at(steps: Array) -> Array:
        moved = (X + grid * steps[:, None, None]).reshape(-1, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = density.log_density(moved).reshape(len(steps), len(X), -1)[:, *own]
            base = np.broadcast_to(density.log_base(moved), (len(moved),))
        return scores + base.reshape(len(steps), -1)

    # All points in one call if that is little work: a small table must not need the compiled kernels.
    calls = 1 if len(POINTS) * len(X) * density.K <= SMALL_WORK // 8 else len(POINTS)
    found = np.concatenate([at(steps) for steps in np.split(POINTS, calls)])
    with np.errstate(invalid="ignore"):
        relative = found - found[len(POINTS) // 2]
    return np.log(np.mean(np.exp(np.minimum(np.nan_to_num(relative, nan=-np.inf), 700.0)), axis=0))


# -- all columns of a table ------------------------------------------------------------------------------------------
def choose_blocks(
    first: Batch, schema: Schema, asked: Mapping[Any, Family[Any]], rule: Rule, together: bool = True
) -> list[Block]:
    """Choose the blocks of a typed table from its first rows; `together`: whether columns may vary together."""
    from deciban.families.categorical import Categorical
    from deciban.read.columns import NUMBERS
    from deciban.text import Text

    blocks = [Block(as_key(key), family, ASKED) for key, family in asked.items()]
    taken = {name for block in blocks for name in block.columns}
    names, codes = encode_labels(first.labels, len(first.table))
    rows = chosen_rows(len(codes), JUDGED)
    sample = Sample(first.table.take(rows), Members.hard(codes, len(names), first.weight).take(rows))
    choices: dict[str, Choice] = {}
    for name, kind in schema.kinds.items():
        if name in taken:
            continue
        if kind in NUMBERS:
            choice = choices[name] = choose_family(sample.column(name), sample.members, kind)
            blocks.append(Block((name,), choice.family, choice.reason, detail=choice.comparison))
        elif kind == "text":
            blocks.append(Block((name,), Text(), "texts: words"))
        else:
            blocks.append(Block((name,), Categorical(), "categories" if kind == "category" else "yes or no"))
    if not together:
        return blocks
    features = schema.features
    whole = {
        name: choice for name, choice in choices.items() if not np.isnan(first.table.pick([features.index(name)])).any()
    }
    block = best_block(sample, blocks, whole, "mean" if rule == "ml" else rule)
    if block is None:
        return blocks
    return [*(each for each in blocks if not set(each.columns) <= set(block.columns)), block]


def needs_all_rows(family: Family[Any]) -> bool:
    """Whether the family iterates over all rows, as mixtures do; it then has no exact leave-one-out."""
    return ability(family, Refines) is not None


class Sample:
    """Rows on which families are compared."""

    def __init__(self, table: Table, members: Members) -> None:
        self.table, self.members, self.label_loss = table, members, LabelLoss(members)

    def column(self, name: str) -> Array:
        """Return the numbers of a column."""
        return self.table.pick([self.table.columns.index(name)])[:, 0]

    def left_out(self, columns: Key, family: Family[Any], rule: Rule) -> Array:
        """Return leave-one-out scores of some columns, shape (n, K)."""
        at = [self.table.columns.index(name) for name in columns]
        X = family.encode(Columns(self.table, at), columns)
        stats: Any = family.collect(X, self.members)
        return family.choose(stats, (X, self.members), rule).leave_one_out(stats, X, self.members, rule)

    def loss(self, scores: Sequence[Array]) -> float:
        """Return the log loss of the labels, each block calibrated with its own scale."""
        classes = tuple(range(self.members.K))
        lengths = [None] * len(scores)
        made = Calibration.fit("blocks", scores, self.members.codes, lengths, classes, len(self.members))
        return self.label_loss(made.apply(scores, lengths, classes))


def best_block(sample: Sample, blocks: Sequence[Block], choices: Mapping[str, Choice], rule: Rule) -> Block | None:
    """Return the block of numbers that predicts labels better than its columns separately; None if there is none."""
    offered = _offered_blocks(sample, choices)
    if not offered or sample.members.K < 2:
        return None
    alone = {
        block.columns: sample.left_out(block.columns, block.family, rule)
        for block in blocks
        if ability(block.family, HasCandidates) is None and not needs_all_rows(block.family)
    }
    apart = least = sample.loss(list(alone.values()))
    best: tuple[Key, Family[Any]] | None = None
    for columns, family in offered:
        others = [scores for key, scores in alone.items() if not set(key) <= set(columns)]
        try:
            loss = sample.loss([*others, sample.left_out(columns, family, rule)])
        except DecibanError:  # such as a singular covariance
            continue
        if loss < least - GAIN / len(sample.members):
            best, least = (columns, family), loss
    if best is None:
        return None
    detail = f"log loss {least:.4f}, and {apart:.4f} for each column separately"
    return Block(*best, "vary together", together=True, detail=detail)


def _offered_blocks(sample: Sample, choices: Mapping[str, Choice]) -> list[tuple[Key, Family[Any]]]:
    """Return candidates: all measurements as they are, or transformed; and those that are smooth by themselves."""
    from deciban.families.binned import Binned
    from deciban.families.poisson import Poisson
    from deciban.families.transformed import Transformed

    many = tuple(name for name in choices if len(np.unique(sample.column(name))) > DISTINCT)[:WIDEST]
    smooth = tuple(name for name in many if not isinstance(choices[name].family, Binned | Poisson))
    found: list[tuple[Key, Family[Any]]] = []
    for columns in dict.fromkeys((smooth, many)):
        if len(columns) > 1 and len(sample.members) >= ROWS_PER_COLUMN * len(columns):
            found.append((columns, Gaussian("auto")))
            by = tuple(_transform(choices[name].family) for name in columns)
            if set(by) != {"none"}:
                found.append((columns, Transformed(by, inner=Gaussian("auto"), outside="gap")))  # type: ignore[arg-type]
    return found


def _transform(family: Family[Any]) -> str:
    """Return how a column enters a block: as it is by itself; by a power where it is binned."""
    from deciban.families.transformed import Transformed

    if isinstance(family, Transformed):
        return str(family.by)
    return "none" if isinstance(family, Gaussian) else "yeo-johnson"


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


def resolve(
    families: FamiliesLike,
    first: Batch,
    schema: Schema | None,
    kinds: Mapping[Any, Any] | None,
    rule: Rule,
    together: bool = True,
) -> tuple[Family[Any], list[Block]]:
    """Return the family that `families` means for these first rows, and its blocks with their reasons."""
    table = first.table
    if isinstance(families, Family):
        return families, [Block((), families, ASKED)]
    if isinstance(families, Mapping):
        product = Product({key: _family(value) for key, value in families.items()})
        return product, [Block(key, family, ASKED) for key, family in zip(product.keys, product.families.values())]
    if isinstance(families, str) and families == "auto":
        if schema is None:
            block = _block_of_array(table)
            return block.family, [block]
        features = {key: value for key, value in (kinds or {}).items() if key != schema.label}
        asked = {key: _family(value) for key, value in features.items() if not _is_kind(value)}
        blocks = choose_blocks(first, schema, asked, rule, together)
        keys = [block.columns[0] if len(block.columns) == 1 else block.columns for block in blocks]
        return Product({key: block.family for key, block in zip(keys, blocks)}), blocks
    raise InputError(
        f"families={families!r} is neither a family such as Gaussian(), nor a dict of column → family, nor 'auto'."
    )


def gap_in_block(table: Table, blocks: Sequence[Block]) -> bool:
    """Whether a value is missing in a block whose columns were found to vary together."""
    needed = {name for block in blocks if block.together for name in block.columns}
    return any(np.isnan(table.pick([j])).any() for j, name in enumerate(table.columns) if name in needed)


def by_type(families: FamiliesLike, table: Table) -> Family[Any]:
    """Return the family of rows without labels: a frame's columns by their types."""
    if not (table.framed and isinstance(families, str) and families == "auto"):
        return resolve(families, Batch(table, None), None, None, "mean")[0]
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


def _block_of_array(table: Table) -> Block:
    if table.texts:
        from deciban.text import Text

        return Block((), Text(), "texts: words, their transform and pseudo-count by leave-one-out log loss")
    if table.sparse:
        from deciban.families.multinomial import Multinomial

        return Block((), Multinomial(), "sparse input: counts of events")
    if _has_gaps(table.pick()):
        return Block((), Gaussian("diagonal"), "numbers with gaps: one Gaussian a column")
    return Block((), Gaussian("auto"), "numbers: one Gaussian block, its structure by leave-one-out log loss")


def _family(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    from deciban.families.names import named

    return named(value)


def _is_kind(value: object) -> bool:
    from deciban.read.columns import DECLARABLE

    return isinstance(value, str) and value in DECLARABLE


def _kinds(asked: Mapping[Any, Any]) -> dict[str, str]:
    """Return what columns must be for the families or kinds asked for."""
    found: dict[str, str] = {}
    for key, value in asked.items():
        kind = value if _is_kind(value) else KIND_FOR.get(type(_family(value)).__name__, "number")
        found |= dict.fromkeys([str(name) for name in as_key(key)], kind)
    return found


def _has_gaps(X: Any) -> bool:
    return X.dtype.kind == "O" or (X.dtype.kind == "f" and bool(np.isnan(X).any()))
