"""Families for the columns of a table: which, and why.

A column of numbers gets the family with the highest leave-one-out density of its class. All candidates are compared in
one measure: rounded values by the probability of their cell (the density at a repeated value has no upper limit),
others by density. Powers and logarithms include their slope, bins divide by their width. Columns that have the same
candidate are scored together: their features are independent.

Whether numbers without gaps are one Gaussian block, in which columns may vary together, changes decisions; so labels
decide, by the log loss of calibrated leave-one-out scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import convert, log_posterior
from deciban.families.abilities import HasCandidates, ability, needs_all_rows
from deciban.families.binned import Binned, left_out_histograms
from deciban.families.gaussian import Gaussian
from deciban.families.limits import NO_LIMIT, limits_of, masked
from deciban.families.poisson import Poisson
from deciban.families.product import ASKED, Block, Key, as_key
from deciban.families.protocol import Family, Rule
from deciban.families.transformed import MappedDensity, MappedFamily, Transformed
from deciban.model.calibration import Calibration, Form
from deciban.model.judge import clearly_worse
from deciban.read.arrays import grid_of
from deciban.read.batches import Batch, chosen_rows
from deciban.read.codes import encode_labels
from deciban.read.tables import Columns, Table
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.read.schema import Schema

JUDGED = 4096  # of the first rows, on which families are compared
WIDEST = 40  # columns of a block
DISTINCT = 10  # distinct values; columns of a block have more: fewer are levels, not measurements
ROWS_PER_COLUMN = 5  # rows that a block needs for each of its columns
STANDARD_ERRORS = 1.0  # by which a block must be better than its columns
FORMS: list[Form] = ["none", "scale"]  # calibrations under which blocks are compared
BINS = (5, 10, 20, 40)
MOST_DECIBANS = 100_000  # largest figure of a comparison: larger ones come from single rows
GAIN = 2.0  # nats over all rows by which a richer candidate must be better
ROWS_PER_BIN = 4  # rows for each bin and class, below which more bins are not tried
POINTS = (np.arange(9) - 4) / 9  # positions in a cell at which a density is averaged; the one in the middle is 0
CELLS = 2**21  # scores of rows, classes and columns that are computed together


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
    kinds = {name: kind for name, kind in schema.kinds.items() if name not in taken}
    choices = sample.choices({name: kind for name, kind in kinds.items() if kind in NUMBERS})
    for name, kind in kinds.items():
        if kind in NUMBERS:
            choice = choices[name]
            blocks.append(Block((name,), choice.family, choice.reason, detail=choice.comparison))
        elif kind == "text":
            blocks.append(Block((name,), Text(), "texts: words"))
        else:
            blocks.append(Block((name,), Categorical(), "categories" if kind == "category" else "yes or no"))
    if not together:
        return blocks
    place = {name: at for at, name in enumerate(schema.features)}
    whole = [name for name in choices if not np.isnan(first.table.pick([place[name]])).any()]
    block = best_block(sample, blocks, choices, whole, "mean" if rule == "ml" else rule)
    if block is None or block.expert:
        return blocks if block is None else [*blocks, block]
    inside = [each for each in blocks if set(each.columns) <= set(block.columns)]
    outside = [each for each in blocks if not set(each.columns) <= set(block.columns)]
    return [*outside, block, *(replace(each, expert=True) for each in inside if each.reason != ASKED)]


class Sample:
    """Rows on which families are compared."""

    def __init__(self, table: Table, members: Members) -> None:
        self.table, self.members, self.label_loss = table, members, LabelLoss(members)

    def numbers(self, names: Iterable[str]) -> Array:
        """Return the numbers of some columns, shape (n, D)."""
        place, names = {name: at for at, name in enumerate(self.table.columns)}, list(names)
        if not names:
            return np.empty((len(self.table), 0))
        return np.asarray(self.table.pick([place[name] for name in names]), dtype=float)

    def choices(self, kinds: Mapping[str, str]) -> dict[str, Choice]:
        """Choose the families of columns of numbers, by their kinds."""
        return dict(zip(kinds, choose_families(self.numbers(kinds), self.members, list(kinds.values()))))

    def left_out_numbers(self, choices: Mapping[str, Choice], rule: Rule) -> dict[Key, Array]:
        """Return leave-one-out scores of single columns without absurd numbers, shape (n, K) each."""
        families = {name: choice.family for name, choice in choices.items() if not choice.absurd}
        found = left_out_columns(self.numbers(families), self.members, list(families.values()), rule)
        return {(name,): scores for name, scores in zip(families, found)}

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


def best_block(
    sample: Sample, blocks: Sequence[Block], choices: Mapping[str, Choice], whole: Sequence[str], rule: Rule
) -> Block | None:
    """Return the block of numbers that predicts labels best, as an expert if its columns separately are better.

    `whole` names the columns without gaps. None if no block is possible.
    """
    offered = _offered_blocks(sample, {name: choices[name] for name in whole})
    if not offered or sample.members.K < 2:
        return None
    alone = sample.left_out_numbers(choices, rule)
    alone = {
        block.columns: alone[block.columns]
        if block.columns in alone
        else sample.left_out(block.columns, block.family, rule)
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

    columns_of = zip(choices, sample.numbers(choices).T)
    many = tuple(name for name, x in columns_of if len(np.unique(x)) > DISTINCT)[:WIDEST]
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
    """Return the transform of a column in a block: that of its own family; a power transform where it is binned."""
    from deciban.families.transformed import Transformed

    if isinstance(family, Transformed):
        return str(family.by)
    return "none" if isinstance(family, Gaussian) else "yeo-johnson"


# -- columns of numbers ------------------------------------------------------------------------------------------------
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
        """What was chosen, as text."""
        why = "fits best" if self.decibans >= 0 else f"fits as well as {self.runner_up} and is simpler"
        absurd = "" if not self.absurd else f"; absurd numbers count as missing ({self.absurd:,} of the first rows)"
        return f"{self.name} ({why}){absurd}"

    @property
    def comparison(self) -> str:
        """By how much it fits better, as text."""
        if abs(self.decibans) >= MOST_DECIBANS:  # one row far away from all others is enough
            return f"more than {MOST_DECIBANS:,} decibans over {self.runner_up} in {self.rows:,} rows"
        return f"{self.decibans:+,.0f} decibans over {self.runner_up} in {self.rows:,} rows".replace("-", "−")


def choose_families(X: Array, members: Members, kinds: Sequence[str]) -> list[Choice]:
    """Choose for each column the candidate with the highest leave-one-out density; of equally good ones, the simpler.

    Absurd numbers, such as 99999999 for an unknown age, count as missing, also in rows that are learnt later.

    >>> rng = np.random.default_rng(0)
    >>> members = Members.hard(rng.integers(0, 2, 500), 2)
    >>> choose_families(np.exp(rng.normal(3.0, 1.0, (500, 1))), members, ["number"])[0].name
    'log-normal'
    """
    step = max(1, CELLS // max(1, len(X) * members.K))
    parts = [slice(at, at + step) for at in range(0, X.shape[1], step)]
    return [choice for part in parts for choice in _choose_some(X[:, part], members, kinds[part])]


def _choose_some(X: Array, members: Members, kinds: Sequence[str]) -> list[Choice]:
    """Choose the families of some columns."""
    known = (~np.isnan(X)).sum(axis=0)
    limit = limits_of(X)
    X = masked(X, limit)
    limits = [None] * len(kinds) if limit is None else list(limit[:, None])
    seen = ~np.isnan(X)
    grids = [grid_of(x[one]) if one.any() else None for x, one in zip(X.T, seen.T)]
    coarse = _coarser_than_classes(X, members, grids)
    offered = [candidates(X[:, [j]], members, kind, limits[j], coarse[j]) for j, kind in enumerate(kinds)]
    scores: list[dict[str, float]] = [{} for _ in kinds]
    for name in dict.fromkeys(name for each in offered for name in each):
        at = [j for j, each in enumerate(offered) if name in each]
        found = density_scores(offered[at[0]][name], X[:, at], members, [grids[j] for j in at])
        for j, score in zip(at, found):
            if score is not None:
                scores[j][name] = score
    chosen = []
    for j, each in enumerate(scores):
        each = {name: each[name] for name in offered[j] if name in each}  # the simpler ones first
        best = next(iter(each))
        for name in each:
            if each[name] > each[best] + GAIN:
                best = name
        second = max((name for name in each if name != best), key=lambda name: each[name], default=best)
        gain = float(convert(each[best] - each[second], "decibans"))
        rows = int(seen[:, j].sum())
        own = NO_LIMIT if limit is None else float(limit[j])
        chosen.append(Choice(offered[j][best], best, gain, second, rows, own, int(known[j]) - rows))
    return chosen


def _coarser_than_classes(X: Array, members: Members, grids: Sequence[float | None]) -> Array:
    """Return which columns were rounded to a unit so large that the values of some class hardly differ, shape (D,).

    Rounding alone has the variance unit²/12. With a narrower normal density, such as of the number of legs in a class
    of animals, a few dozen rows give an evidence of thousands of decibans.
    """
    units = np.array([grid or 0.0 for grid in grids])
    found = units > 0
    if found.any():
        family = Gaussian("diagonal")
        density: Any = family.estimate(family.collect(X[:, found], members), "mean")
        found[found] = density.moments()[1].min(axis=0) < units[found] ** 2 / 12
    return found


def candidates(
    X: Array, members: Members, kind: str, limit: Array | None = None, coarse: bool = False
) -> dict[str, Family[Any]]:
    """Return the families that a column of numbers may have, the simpler ones first; no normal ones if it is coarse."""
    seen = X[~np.isnan(X)]
    found: dict[str, Family[Any]] = {}
    if not coarse:
        found["normal"] = Gaussian("diagonal", limit=limit)
        if kind == "number" and len(seen) and seen.min() > 0:
            found["log-normal"] = Transformed("log", outside="gap", reach=limit)  # 0 in later rows counts as missing
        found["normal after a power transform"] = Transformed("yeo-johnson", reach=limit)
    if kind == "count":
        found["Poisson"] = Poisson(limit=limit)
    bins = best_bins(X, members)
    found[f"split into {min(bins, max(len(np.unique(seen)), 1))} ranges"] = Binned(bins, limit=limit)
    return found


def best_bins(X: Array, members: Members) -> int:
    """Return how many bins predict the labels best, each row left out in turn; of equally good numbers the least."""
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


def density_scores(
    family: Family[Any], X: Array, members: Members, grids: Sequence[float | None]
) -> list[float | None]:
    """Return for each column Σ w · log density, or probability of the cell, of each value in its class without itself.

    None where the family is no candidate for the rows.
    """
    try:
        return list(_density_scores(_without_limit(family), X, members, grids))
    except DecibanError:
        if X.shape[1] == 1:
            return [None]
        one_by_one = [density_scores(family, X[:, [j]], members, grids[j : j + 1]) for j in range(X.shape[1])]
        return [score for (score,) in one_by_one]


def _density_scores(family: Any, X: Array, members: Members, grids: Sequence[float | None]) -> Array:
    """Return what `density_scores` returns, as an array of shape (D,)."""
    stats, own = family.collect(X, members), members.own_codes()
    mapped = isinstance(family, MappedFamily)
    inner = (family.inside(stats.map), stats.inner, family.mapped(X, stats.map)) if mapped else (family, stats, X)
    each = inner[0].left_out_features(*inner[1:], members, "mean")[np.arange(len(X)), own]
    if mapped:
        each += family.log_slope(X, stats.map)
    rounded = [j for j, grid in enumerate(grids) if grid is not None]
    if rounded and not isinstance(family, Poisson):
        units = np.array([grids[j] for j in rounded], dtype=float)
        # no cell crosses the edge of a bin
        bins = isinstance(family, Binned)
        inside = 0.0 if bins else _within_cell(family.estimate(stats, "mean"), X, own, grids)[:, rounded]
        each[:, rounded] = np.minimum(each[:, rounded] + np.log(units) + inside, 0.0)
    return np.asarray(members.row_weights() @ np.where(np.isnan(X), 0.0, each))


def _log_slope(density: Any, X: Array) -> Array | float:
    """Return the logarithm of the slope of the map of each value, shape (n, D); 0 where values are not mapped."""
    return density.family.log_slope(X, density.map) if isinstance(density, MappedDensity) else 0.0


def _within_cell(density: Any, X: Array, own: Array, grids: Sequence[float | None]) -> Array:
    """Return the log of the mean density over a cell relative to the density at its middle, shape (n, D)."""
    units = np.array([grid or 0.0 for grid in grids])
    (n, D), found = X.shape, np.empty((len(POINTS), *X.shape))
    step = max(1, CELLS // max(1, X.size * density.K))
    with np.errstate(invalid="ignore", divide="ignore"):
        for start in range(0, len(POINTS), step):
            some = POINTS[start : start + step]
            moved = (X + units * some[:, None, None]).reshape(-1, D)
            parts = density.parts(moved)[np.arange(len(moved)), np.tile(own, len(some))]
            found[start : start + step] = (parts + _log_slope(density, moved)).reshape(-1, n, D)
        relative = found - found[len(POINTS) // 2]
    return np.log(np.mean(np.exp(np.minimum(np.nan_to_num(relative, nan=-np.inf), 700.0)), axis=0))


def left_out_columns(X: Array, members: Members, families: Sequence[Family[Any]], rule: Rule) -> list[Array]:
    """Return leave-one-out scores of each column under its family, shape (n, K) each; no number is absurd."""
    found: dict[int, Array] = {}
    for kind in dict.fromkeys(map(repr, families)):
        at = [j for j, family in enumerate(families) if repr(family) == kind]
        family: Any = _without_limit(families[at[0]])
        stats = family.collect(X[:, at], members)
        scores = family.choose(stats).left_out_features(stats, X[:, at], members, rule)
        found |= {j: scores[:, :, place] for place, j in enumerate(at)}
    return [found[j] for j in range(len(families))]


def _without_limit(family: Family[Any]) -> Family[Any]:
    """Return the family for columns whose absurd numbers are missing already."""
    if isinstance(family, Transformed):
        return replace(family, reach=None)
    return replace(family, limit=None) if isinstance(family, Gaussian | Poisson | Binned) else family
