"""Families for the columns of a table: which, and why.

A column of numbers gets the family with the highest leave-one-out density of its class. All candidates are compared in
one measure: values that were rounded by the probability of the cell they stand for (else a density concentrated on a
repeated value could be as high as it likes), others by density. Powers and logarithms include their slope, bins divide
by their width.

Whether numbers without gaps are one Gaussian block, in which columns may vary together, changes decisions; so labels
decide, by the log loss of calibrated leave-one-out scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import convert, log_posterior
from deciban.families.abilities import HasCandidates, ability, needs_all_rows
from deciban.families.gaussian import Gaussian
from deciban.families.limits import NO_LIMIT, limits_of, masked
from deciban.families.product import Block, Key, as_key
from deciban.families.protocol import Density, Family, Rule
from deciban.kernels.choice import SMALL_WORK
from deciban.model.calibration import Calibration, Form
from deciban.model.candidates import clearly_worse
from deciban.read.batches import Batch
from deciban.read.labels import encode_labels
from deciban.read.numbers import grid_of
from deciban.read.reservoir import chosen_rows
from deciban.read.tables import Columns, Table
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.read.schema import Schema

BINS = (5, 10, 20, 40)
MOST_DECIBANS = 100_000  # that a comparison names: larger figures come from single rows, and say no more
GAIN = 2.0  # nats over all rows by which a richer candidate must be better
ROWS_PER_BIN = 4  # and class: fewer do not show its height
POINTS = (np.arange(9) - 4) / 9  # positions in a cell at which a density is averaged; the one in the middle is 0
JUDGED = 4096  # of the first rows, on which families are compared
WIDEST = 40  # columns of a block
DISTINCT = 10  # values that a column of a block must have: fewer are steps, not measurements
ROWS_PER_COLUMN = 5  # of a block: fewer do not show how its columns vary together
STANDARD_ERRORS = 1.0  # by which a block must be better than its columns
FORMS: list[Form] = ["none", "scale"]  # calibrations under which blocks are compared
ASKED = "named by you"


# -- one column of numbers -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Choice:
    """The family that fits a column best, and by how much."""

    family: Family[Any]
    name: str
    decibans: float  # over the runner-up, all rows together
    runner_up: str
    rows: int  # compared
    limit: float = NO_LIMIT  # numbers of larger absolute value count as missing
    absurd: int = 0  # such numbers in the rows compared

    @property
    def reason(self) -> str:
        """What was chosen, for people."""
        why = "fits best" if self.decibans >= 0 else f"fits as well as {self.runner_up} and is simpler"
        absurd = "" if not self.absurd else f"; absurd numbers count as missing ({self.absurd:,} of the first rows)"
        return f"{self.name} ({why}){absurd}"

    @property
    def comparison(self) -> str:
        """By how much, for people who ask."""
        if abs(self.decibans) >= MOST_DECIBANS:  # one row far away from all others is enough
            return f"more than {MOST_DECIBANS:,} decibans over {self.runner_up} in {self.rows:,} rows"
        return f"{self.decibans:+,.0f} decibans over {self.runner_up} in {self.rows:,} rows".replace("-", "−")


def choose_family(x: Array, members: Members, kind: str) -> Choice:
    """Choose the candidate with the highest leave-one-out density; of equally good ones, the simpler.

    Absurd numbers, such as 99999999 for an unknown age, count as missing, also in rows that are learnt later.

    >>> rng = np.random.default_rng(0)
    >>> members = Members.hard(rng.integers(0, 2, 500), 2)
    >>> choose_family(np.exp(rng.normal(3.0, 1.0, 500)), members, "number").name
    'log-normal'
    """
    X = np.asarray(x, dtype=float)[:, None]
    limit = limits_of(X)
    X = masked(X, limit)
    seen = X[~np.isnan(X)]
    grid = grid_of(seen) if len(seen) else None
    scores, weight = {}, members.row_weights()
    families = candidates(X, members, kind, limit)
    for name, family in families.items():
        try:
            scores[name] = density_score(family, X, members, weight, grid)
        except DecibanError:  # not a candidate for these rows
            continue
    best = next(iter(scores))
    for name in scores:
        if scores[name] > scores[best] + GAIN:
            best = name
    second = max((name for name in scores if name != best), key=lambda name: scores[name], default=best)
    gain = float(convert(scores[best] - scores[second], "decibans"))
    absurd = int((~np.isnan(x)).sum()) - len(seen)
    return Choice(families[best], best, gain, second, len(seen), NO_LIMIT if limit is None else limit[0], absurd)


def candidates(X: Array, members: Members, kind: str, limit: Array | None = None) -> dict[str, Family[Any]]:
    """Return the families that a column of numbers may have, the simpler ones first."""
    from deciban.families.binned import Binned
    from deciban.families.poisson import Poisson
    from deciban.families.transformed import Transformed

    seen = X[~np.isnan(X)]
    found: dict[str, Family[Any]] = {"normal": Gaussian("diagonal", limit=limit)}
    if kind == "number" and len(seen) and seen.min() > 0:
        found["log-normal"] = Transformed("log", outside="gap", reach=limit)  # a zero in later rows counts as missing
    found["normal after a power transform"] = Transformed("yeo-johnson", reach=limit)
    if kind == "count":
        found["Poisson"] = Poisson(limit=limit)
    bins = best_bins(X, members)
    found[f"split into {bins} ranges"] = Binned(bins)
    return found


def best_bins(X: Array, members: Members) -> int:
    """Return how many bins predict the labels best, each row left out in turn; of equally good numbers the least."""
    from deciban.families.binned import left_out_histograms

    most = min(2 * len(np.unique(X)), len(X) // (ROWS_PER_BIN * members.K) + 1)
    tried = [bins for bins in BINS if bins == BINS[0] or bins < most]
    best, least, label_loss = BINS[0], np.inf, LabelLoss(members)
    for bins, loss in zip(tried, label_loss.of_each(left_out_histograms(X[:, 0], members, tried))):
        if loss < least - GAIN / len(X):
            best, least = bins, loss
    return best


class LabelLoss:
    """The mean log loss of the labels, by left-out scores and the proportions of the classes."""

    def __init__(self, members: Members) -> None:
        self.codes, self.weight = members.codes, members.row_weights()
        with np.errstate(divide="ignore"):
            self.log_prior = np.log(members.weights()) - np.log(self.weight.sum())

    def of_each(self, scores: Sequence[Array]) -> list[float]:
        """Return the mean losses of several scores, shape (n, K) each."""
        with np.errstate(divide="ignore"):
            posterior = log_posterior(np.concatenate(scores), self.log_prior)
        own = posterior.reshape(len(scores), len(self.codes), -1)[:, np.arange(len(self.codes)), self.codes]
        return [self.mean(-each) for each in own]

    def of_rows(self, scores: Array) -> Array:
        """Return the loss of each row by scores (n, K), shape (n,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(-log_posterior(scores, self.log_prior)[np.arange(len(self.codes)), self.codes])

    def mean(self, losses: Array) -> float:
        """Return the mean of losses (n,), by the weights of the rows."""
        return float(np.average(losses, weights=self.weight))


def density_score(family: Family[Any], X: Array, members: Members, weight: Array, grid: float | None) -> float:
    """Return Σ w · log density, or probability of the cell, of each value in its own class without itself."""
    from deciban.families.binned import Binned
    from deciban.families.poisson import Poisson

    stats: Any = family.collect(X, members)
    family = family.choose(stats)
    own = np.arange(len(X)), members.codes
    density = family.estimate(stats, "mean")
    each = family.leave_one_out(stats, X, members, "mean", density)[own] + np.reshape(density.log_base(X), -1)
    if grid is not None and not isinstance(family, Poisson):
        inside = (
            0.0 if isinstance(family, Binned) else _within_cell(density, X, own, members.K, grid)
        )  # no cell crosses an edge
        each = np.minimum(each + np.log(grid) + inside, 0.0)
    seen = ~np.isnan(X[:, 0])
    return float(weight[seen] @ each[seen])


def _within_cell(density: Density, X: Array, own: tuple[Array, Array], K: int, grid: float) -> Array:
    """Return the log of the mean density over a cell, relative to the density at its middle."""

    def at(steps: Array) -> Array:
        moved = (X + grid * steps[:, None, None]).reshape(-1, 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = density.log_density(moved).reshape(len(steps), len(X), -1)[:, *own]
            base = np.broadcast_to(density.log_base(moved), (len(moved),))
        return scores + base.reshape(len(steps), -1)

    # All points in one call if that is little work: a small table must not need the compiled kernels.
    calls = 1 if len(POINTS) * len(X) * K <= SMALL_WORK // 8 else len(POINTS)
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
    if block is None or block.expert:
        return blocks if block is None else [*blocks, block]
    inside = [each for each in blocks if set(each.columns) <= set(block.columns)]
    outside = [each for each in blocks if not set(each.columns) <= set(block.columns)]
    return [*outside, block, *(replace(each, expert=True) for each in inside if each.reason != ASKED)]


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

    def losses(self, scores: Sequence[Array]) -> Array:
        """Return the log loss of each row's label, by the scores as they are, or with one scale if that is better.

        Leave-one-out scores of the full sums suffice for a calibrator of one scale.
        """
        classes, codes, lengths = tuple(range(self.members.K)), self.members.codes, [None] * len(scores)
        made = Calibration.fit_each(FORMS, "blocks", scores, codes, lengths, classes, len(codes))
        each = [self.label_loss.of_rows(one.apply(scores, lengths, classes)) for one in made.values()]
        return min(each, key=lambda losses: self.label_loss.mean(losses))


def best_block(sample: Sample, blocks: Sequence[Block], choices: Mapping[str, Choice], rule: Rule) -> Block | None:
    """Return the block of numbers that predicts labels best, as an expert if its columns separately are better.

    None if no block is possible.
    """
    offered = _offered_blocks(sample, choices)
    if not offered or sample.members.K < 2:
        return None
    alone = {
        block.columns: sample.left_out(block.columns, block.family, rule)
        for block in blocks
        if ability(block.family, HasCandidates) is None and not needs_all_rows(block.family)
    }
    apart, least = sample.losses(list(alone.values())), np.inf
    best: tuple[Key, Family[Any], Array] | None = None
    for columns, family in offered:
        others = [scores for key, scores in alone.items() if not set(key) <= set(columns)]
        try:
            losses = sample.losses([*others, sample.left_out(columns, family, rule)])
        except DecibanError:  # such as a singular covariance
            continue
        loss = sample.label_loss.mean(losses)
        if loss < least - GAIN / len(sample.members):
            best, least = (columns, family, losses), loss
    if best is None:
        return None
    columns, family, losses = best
    detail = f"log loss {least:.4f}, and {sample.label_loss.mean(apart):.4f} for each column separately"
    # the structure of the block was chosen on the same rows, so that a small difference may be due to the choice
    better = clearly_worse(apart, losses, STANDARD_ERRORS)
    return Block(columns, family, "vary together", together=better, detail=detail, expert=not better)


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
            limit = np.array([choices[name].limit for name in columns])
            by = tuple(_transform(choices[name].family) for name in columns)
            for each in dict.fromkeys((("none",) * len(by), by)):
                one = Transformed(each, inner=Gaussian("auto"), outside="gap", reach=limit)  # type: ignore[arg-type]
                found.append((columns, Gaussian("auto", limit=limit) if set(each) == {"none"} else one))
    return found


def _transform(family: Family[Any]) -> str:
    """Return how a column enters a block: as it is by itself; by a power where it is binned."""
    from deciban.families.transformed import Transformed

    if isinstance(family, Transformed):
        return str(family.by)
    return "none" if isinstance(family, Gaussian) else "yeo-johnson"
