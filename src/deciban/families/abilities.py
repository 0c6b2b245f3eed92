"""Abilities: protocols of the methods that only some families and densities have.

    found = ability(family, HasEvidence)       the family itself, or None
    if found is not None:
        found.log_evidence(stats)

A family that has an ability inherits from its protocol. A composite, such as a product of blocks or a transformed
family, has the methods of all abilities of its parts; `supports(kind)` tells which of them can be used. Call
`ability` once per fit, not for every row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from deciban.statistics import Array, Members, Stats

if TYPE_CHECKING:
    import numpy as np

    from deciban.families.protocol import Density, Passes, Posterior, Rows, Rule

A = TypeVar("A")


# -- of families -----------------------------------------------------------------------------------------------------
@runtime_checkable
class HasEvidence(Protocol):
    """Families whose marginal likelihood has a closed form."""

    def log_evidence(self, stats: Any) -> Array:
        """Compute the log marginal likelihood log ∫ p(D|θ) p(θ) dθ.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.

        Returns
        -------
        ndarray of shape (K,) or (1,)
            One number per class, or one in all where the classes share parameters.
        """


@runtime_checkable
class HasPosterior(Protocol):
    """Families that describe the posterior of every parameter."""

    def posterior(self, stats: Any) -> Posterior:
        """Describe the posterior of every parameter.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.

        Returns
        -------
        Posterior
            Mean, mode, standard deviation and credible intervals, by the name of the parameter.
        """


@runtime_checkable
class HasDraws(Protocol):
    """Families that can draw parameters from their posterior."""

    def draw(self, stats: Any, rng: np.random.Generator, times: int = 1) -> Density:
        """Draw parameters from the posterior.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.
        rng : numpy.random.Generator
            Source of random numbers.
        times : int, default=1
            Number of independent draws.

        Returns
        -------
        Density
            The density of each class with the parameters drawn: K × times densities, those of the first draw first.
        """


@runtime_checkable
class HasLogPrior(Protocol):
    """Families that can evaluate their prior, which EM under rule "map" maximises together with the likelihood."""

    def log_prior(self, density: Any) -> float:
        """Compute the log prior at the parameters of a density, up to a constant.

        Parameters
        ----------
        density : Density
            A density of this family with plug-in parameters.

        Returns
        -------
        float
            The term that rule "map" adds to a log-likelihood.
        """


@runtime_checkable
class HasFootprint(Protocol):
    """Families with cheaper sums that are enough to check that rows were learnt."""

    def footprint(self, X: Rows, members: Members) -> Stats:
        """Collect cheaper sums, enough to check that rows were learnt.

        Parameters
        ----------
        X : rows
            What the family's `encode` returned.
        members : Members
            The class and the weight of each row.

        Returns
        -------
        Stats
            The sums, with 0 in the fields that the check does not need.
        """


@runtime_checkable
class Counts(Protocol):
    """Families of rows that count events, such as words."""

    def lengths(self, X: Rows) -> Array:
        """Count the events of each row.

        Parameters
        ----------
        X : rows
            What the family's `encode` returned.

        Returns
        -------
        ndarray of shape (n,)
            Number of events, such as words.
        """


@runtime_checkable
class HasChoices(Protocol):
    """Families with choices that cannot be made from sums."""

    def chosen_by_labels(self) -> list[str]:
        """List the choices that labels make.

        Returns
        -------
        list of str
            Names of the choices; figures on the same rows are optimistic about them.
        """

    def keep_choices(self, chosen: Any, with_rows: bool) -> Self:
        """Copy the choices that cannot be made again.

        Parameters
        ----------
        chosen : Family
            A family of the same kind, with its choices made.
        with_rows : bool
            If True, copy only the choices under which the sums were collected. If False, copy also those that only
            rows or labels can make.

        Returns
        -------
        Family
            This family with the choices copied.
        """


@runtime_checkable
class HasFrame(Protocol):
    """Families that sum about an origin, which is chosen once enough rows were seen."""

    def framed(self, stats: Any) -> Self:
        """Adopt the origin of the sums, if the family has none yet.

        Parameters
        ----------
        stats : Stats
            Sums of all rows so far.

        Returns
        -------
        Family
            The family that collects later rows about the same origin; itself if nothing changes.
        """


class LeftOutScores(Protocol):
    """Leave-one-out scores by candidates that share their sums."""

    @property
    def size(self) -> int:
        """Number of sums that it holds."""

    def __call__(self, candidate: Any, rows: Array) -> Array:
        """Return the scores of some rows by a candidate, shape (m, K)."""


@runtime_checkable
class HasCandidates(Protocol):
    """Families with choices that must be made before rows are summed, and that labels judge."""

    @property
    def open(self) -> bool:
        """Whether a choice is open, so that the first rows must be seen before all rows are summed."""

    @property
    def calibration(self) -> str:
        """Name of the calibrator under which candidates are judged, the default of a classifier of this family."""

    def candidates(self, X: Rows, members: Members) -> Sequence[Sequence[Self]]:
        """List the candidates to choose from.

        Parameters
        ----------
        X : rows
            What the family's `encode` returned.
        members : Members
            The class and the weight of each row.

        Returns
        -------
        sequence of sequence of Family
            Lines of candidates. Along a line the loss falls and then rises; of equally good candidates, that of the
            first line is preferred.
        """

    def without_labels(self, X: Rows, members: Members) -> Self:
        """Make the choices where no labels can judge candidates.

        Parameters
        ----------
        X : rows
            What the family's `encode` returned.
        members : Members
            The class and the weight of each row.

        Returns
        -------
        Family
            The family with its choices made.
        """

    def read(self, X: Rows) -> None:
        """Read rows before they are summed and scored; the result is kept with the rows, so that they are read once.

        Parameters
        ----------
        X : rows
            What the family's `encode` returned.
        """

    def same_sums(self, other: Any) -> bool:
        """Tell whether two candidates read the same statistics.

        Parameters
        ----------
        other : Family
            Another candidate.

        Returns
        -------
        bool
            True if sums of one serve the other.
        """

    def same_features(self, other: Any) -> bool:
        """Tell whether two candidates count the same features.

        Parameters
        ----------
        other : Family
            Another candidate.

        Returns
        -------
        bool
            True if both find the same features in a row.
        """

    def left_out_scores(self, stats: Any | None, X: Rows, members: Members, rule: Rule) -> LeftOutScores:
        """Prepare leave-one-out scores that reuse sums shared by candidates.

        Parameters
        ----------
        stats : Stats or None
            Sums of the rows; if None, they are collected here.
        X : rows
            What the family's `encode` returned.
        members : Members
            The class and the weight of each row.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the sums.

        Returns
        -------
        LeftOutScores
            A function (candidate, rows) → scores of shape (m, K).
        """


@runtime_checkable
class RunningSums(Protocol):
    """Sums of a stream of batches; mutable, with one owner."""

    @property
    def family(self) -> Any:
        """The family, its choices made by the first rows."""

    @property
    def known(self) -> Any:
        """Statistics whose names are used to encode later rows; None if all names are accepted."""

    def choose(self, X: Rows, members: Members, rule: Rule) -> None:
        """Let the family make its open choices from the first rows and their sums."""

    def add(self, X: Rows, members: Members) -> None:
        """Add the sums of a batch."""

    def total(self) -> Any:
        """Return the statistics of all batches."""


@runtime_checkable
class Streams(Protocol):
    """Families whose sums grow in place while batches are added."""

    def accumulator(self, X: Rows, members: Members, columns: Sequence[str]) -> RunningSums:
        """Start sums that grow in place with the first rows of a stream.

        Parameters
        ----------
        X : rows
            What the family's `encode` returned.
        members : Members
            The class and the weight of each row.
        columns : sequence of str
            Names of the columns, for error messages.

        Returns
        -------
        RunningSums
            The sums so far; mutable, with one owner.
        """


@runtime_checkable
class Refines(Protocol):
    """Families that iterate over all rows, such as mixtures; they have no exact leave-one-out."""

    def refine(self, stats: Any, X: Rows, members: Members) -> tuple[Self, Any]:
        """Make the choices that need all rows, and collect the sums under them.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.
        X : rows
            What the family's `encode` returned.
        members : Members
            The class and the weight of each row.

        Returns
        -------
        family : Family
            The family with its choices made.
        stats : Stats
            The sums under these choices.
        """


@runtime_checkable
class RefinesParts(Protocol):
    """Families that iterate over all rows, and can do so over rows in parts that stay where they are."""

    def refine_parts(self, stats: Any, X: Rows, members: Members, parts: Passes) -> tuple[Self, Any]:
        """Make the choices that need all rows, and collect the sums under them.

        Parameters
        ----------
        stats : Stats
            Sums of all rows of each class.
        X : rows
            The first rows: what the family's `encode` returned.
        members : Members
            The class and the weight of each of them.
        parts : Passes
            All rows, in parts of type `LabelledPart`.

        Returns
        -------
        family : Family
            The family with its choices made.
        stats : Stats
            The sums under these choices.
        """


@runtime_checkable
class HasSubset(Protocol):
    """Families made of others, which hold the columns of each."""

    def subset(self, stats: Any, features: Array, columns: Sequence[Any]) -> tuple[Self, Any]:
        """Select some of the columns, in the order given.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.
        features : ndarray of int
            Positions of the columns to keep.
        columns : sequence
            Names or positions of all columns.

        Returns
        -------
        family : Family
            The family of these columns.
        stats : Stats
            Their sums.
        """


@runtime_checkable
class SeveralParts(Protocol):
    """Experts whose evidence has several parts, each with a weight of its own in calibrated scores."""

    @property
    def part_columns(self) -> list[tuple[int, ...]]:
        """Positions of the columns of each part."""

    def part_scores(self, density: Any, X: Rows) -> list[Array]:
        """Score rows, part by part.

        Parameters
        ----------
        density : Density
            The density of this family.
        X : rows
            What the family's `encode` returned.

        Returns
        -------
        list of ndarray of shape (n, K)
            Evidence of each part, in the order of `part_columns`.
        """

    def left_out_parts(
        self, stats: Any, X: Rows, members: Members, rule: Rule, density: Density | None = None
    ) -> list[Array]:
        """Score each row by the sums without it, part by part.

        Parameters
        ----------
        stats : Stats
            Sums that contain the rows.
        X : rows
            What the family's `encode` returned.
        members : Members
            The class and the weight of each row.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the sums.
        density : Density, optional
            The density of `stats`, for callers that have it.

        Returns
        -------
        list of ndarray of shape (n, K)
            Evidence of each part, in the order of `part_columns`.
        """

    def restricted(self, stats: Any, features: Array) -> tuple[Any, Any] | None:
        """Keep the parts that some of the columns allow.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.
        features : ndarray of int
            Positions of the columns to keep.

        Returns
        -------
        tuple of (Family, Stats) or None
            Family and sums of the parts that remain; None if none does.
        """


@runtime_checkable
class HasLeftOutFeatures(Protocol):
    """Families of independent features, which score each feature of a row that is left out."""

    def left_out_features(self, stats: Any, X: Rows, members: Members, rule: Rule) -> Array:
        """Score each feature of each row without that row.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.
        X : rows
            Encoded rows, which the sums hold.
        members : Members
            The class and the weight of each row.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the sums.

        Returns
        -------
        ndarray of shape (n, K, D)
            Scores whose sum over the features is `leave_one_out`.
        """

    def separate(self, stats: Any) -> bool:
        """Tell whether the scores of each feature depend on the sums of that feature alone.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.

        Returns
        -------
        bool
            False where features share a parameter, or a prior that is derived from the sums of all.
        """


@runtime_checkable
class HasFoldScores(Protocol):
    """Families that share work between the folds of cross-validation."""

    def fold_scores(self, stats: Any, X: Rows, members: Members, fold: Array, rule: Rule) -> Iterator[list[Array]]:
        """Score each row by the sums without each fold, and rows of other folds also without the row.

        Parameters
        ----------
        stats : Stats
            Sums that contain the rows.
        X : rows
            What the family's `encode` returned.
        members : Members
            The class and the weight of each row.
        fold : ndarray of shape (n,)
            The fold of each row, from 0.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the sums.

        Yields
        ------
        list of ndarray of shape (n, K)
            For each fold, the evidence of each part, in the order of `part_columns`.
        """


@runtime_checkable
class SharesParameters(Protocol):
    """Families in which a row of one class can change the densities of other classes."""

    @property
    def shared(self) -> bool:
        """Whether a row of one class changes the densities of other classes."""


@runtime_checkable
class Unmixable(Protocol):
    """Families that cannot be a mixture component."""

    @property
    def not_mixable(self) -> str:
        """Why this family cannot be a mixture component, and the remedy."""


# -- of densities ----------------------------------------------------------------------------------------------------
@runtime_checkable
class HasParts(Protocol):
    """Densities that are a sum over features."""

    def parts(self, X: Rows) -> Array:
        """Return the log density of each feature, shape (n, K, D); its sum over D is `log_density`."""


@runtime_checkable
class HasMoments(Protocol):
    """Density of numbers with a mean and a variance for each feature."""

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances in the units of the data, shape (K, D) each; inf where there is none."""


@runtime_checkable
class HasCovariances(Protocol):
    """Density of numbers whose features depend on each other."""

    def covariances(self) -> Array:
        """Return covariances in the units of the data, shape (K, D, D); inf where there is none."""


@runtime_checkable
class HasNamedParts(Protocol):
    """Densities that are a sum over features which are not columns, such as words."""

    def named_parts(self, X: Rows) -> tuple[list[str], Array, Array]:
        """Return names (P,), log densities (n, K, P) and values (n, P) of the features in these rows."""


@runtime_checkable
class HasWordParts(Protocol):
    """Densities whose features may be parts of words."""

    def parts_by_word(self, X: Rows, names: list[str], parts: Array) -> tuple[list[str], Array, Array] | None:
        """Return words (W,), parts (n, K, W) and values (n, W), from parts (n, K, P); None for other features."""


@runtime_checkable
class HasSelection(Protocol):
    """Densities with a marginal density of some of the features."""

    def select(self, features: Array) -> Density:
        """Return the density of these features."""


@runtime_checkable
class HasContrast(Protocol):
    """Densities whose differences between classes cost less than the densities."""

    def contrast(self, X: Rows) -> Array:
        """Return log f(x|k), shape (n, K), up to a term of each row that all k share."""


@runtime_checkable
class HasDiscriminant(Protocol):
    """Densities whose logarithm is a polynomial of degree two at most."""

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Return A (K, D, D) or None, b (K, D), c (K,): log f(x|k) = xᵀA x + xᵀb + c up to terms that all k share."""


@runtime_checkable
class Composite(Protocol):
    """Families and densities made of others."""

    def supports(self, kind: type) -> bool:
        """Tell whether the parts have an ability, so that the composite can use it.

        Parameters
        ----------
        kind : type
            A protocol of `deciban.families.abilities`.

        Returns
        -------
        bool
            True if the ability can be used.
        """


ONE_PART_IS_ENOUGH = (
    *(HasChoices, Streams, Refines, RefinesParts, SharesParameters, Unmixable, HasFootprint, HasSubset, HasFrame),
)


def ability(thing: object, kind: type[A]) -> A | None:
    """Return `thing` if it has the ability, and if a composite's parts support it; otherwise None.

    >>> from deciban import Bernoulli, Binned, Product, Text
    >>> ability(Product({"a": Bernoulli(), "b": Bernoulli()}), HasEvidence) is not None
    True
    >>> ability(Product({"a": Bernoulli(), "b": Text()}), HasEvidence) is None
    True
    """
    if not all(hasattr(thing, name) for name in _members(kind)):  # type: ignore[arg-type]
        return None
    return thing if not hasattr(thing, "supports") or thing.supports(kind) else None  # type: ignore[return-value]


@cache
def _members(kind: type) -> tuple[str, ...]:
    """Return the members of a protocol; `isinstance` would collect them at each call, in tens of microseconds."""
    return tuple(name for name in vars(kind) if not name.startswith("_"))


def needs_all_rows(family: object) -> bool:
    """Whether the family iterates over all rows, as mixtures do; it then has no exact leave-one-out."""
    return ability(family, Refines) is not None


def parts_support(parts: Sequence[object], kind: type) -> bool:
    """Whether a composite of these parts has an ability: one part is enough for some, the others need all parts."""
    have = (ability(part, kind) is not None for part in parts)
    return any(have) if kind in ONE_PART_IS_ENOUGH else all(have)


def with_frame(family: Any, stats: Any) -> Any:
    """Return the family with the origin of the sums, where it sums about an origin and has none yet."""
    framed = ability(family, HasFrame)
    return family if framed is None else framed.framed(stats)
