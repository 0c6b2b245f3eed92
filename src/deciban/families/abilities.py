"""What only some families and densities can do, as protocols that are asked for by type.

    found = ability(family, HasEvidence)       the family itself, or None
    if found is not None:
        found.log_evidence(stats)

A composite, such as a product of blocks or a transformed family, has the methods of its parts and can use them only if
its parts have them. It says so in `supports(kind)`. Ask once, at a fit, not for every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from deciban.statistics import Array, Members, Stats

if TYPE_CHECKING:
    import numpy as np

    from deciban.families.posterior import Posterior
    from deciban.families.protocol import Density, Rows, Rule

A = TypeVar("A")


# -- of families -----------------------------------------------------------------------------------------------------
@runtime_checkable
class HasEvidence(Protocol):
    """Families whose marginal likelihood has a closed form."""

    def log_evidence(self, stats: Any) -> Array:
        """Return log ∫ p(D|θ) p(θ) dθ, shape (K,); one number where classes share parameters."""


@runtime_checkable
class HasPosterior(Protocol):
    """Families that describe the posterior of every parameter."""

    def posterior(self, stats: Any) -> Posterior:
        """Return mean, mode, standard deviation and credible interval of every parameter."""


@runtime_checkable
class HasDraws(Protocol):
    """Families that can draw parameters from their posterior."""

    def draw(self, stats: Any, rng: np.random.Generator) -> Density:
        """Return the density of parameters drawn once from the posterior."""


@runtime_checkable
class HasLogPrior(Protocol):
    """Families that can evaluate their prior, which EM under rule "map" maximises together with the likelihood."""

    def log_prior(self, density: Any) -> float:
        """Return the log prior at the parameters of a density, up to a constant."""


@runtime_checkable
class HasFootprint(Protocol):
    """Families with cheaper sums that are enough to check that rows were learnt."""

    def footprint(self, X: Rows, members: Members) -> Stats:
        """Return the sums with 0 in the fields that the check does not need."""


@runtime_checkable
class Counts(Protocol):
    """Families of rows that count events, such as words."""

    def lengths(self, X: Rows) -> Array:
        """Return the number of events of each row, shape (n,)."""


@runtime_checkable
class HasChoices(Protocol):
    """Families with choices that sums alone cannot make again."""

    def chosen_by_labels(self) -> list[str]:
        """Return the names of the choices that labels make: figures on the same rows are optimistic about them."""

    def keep_choices(self, chosen: Any, with_rows: bool) -> Self:
        """Copy from `chosen` the choices that cannot be made again: those under which the sums were collected.

        Without rows, copy also the choices that only rows or labels can make.
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
        """Return lines of candidates; along a line the loss falls and then rises.

        Of candidates that are equally good, the first line's is preferred.
        """

    def without_labels(self, X: Rows, members: Members) -> Self:
        """Return the family with its choices made where no labels can judge candidates."""

    def same_sums(self, other: Any) -> bool:
        """Whether both candidates read the same statistics."""

    def left_out_scores(self, stats: Any | None, X: Rows, members: Members, rule: Rule) -> LeftOutScores:
        """Return f(candidate, rows) that reuses sums shared by candidates; without `stats`, it sums the rows itself."""


@runtime_checkable
class RunningSums(Protocol):
    """Sums of a stream of batches; mutable, with one owner."""

    @property
    def family(self) -> Any:
        """The family, its choices made by the first rows."""

    @property
    def known(self) -> Any:
        """Statistics that hold the names which later rows are encoded by; None where any name is taken."""

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
        """Start with the sums of the first rows."""


@runtime_checkable
class Refines(Protocol):
    """Families that iterate over all rows, such as mixtures; they have no exact leave-one-out."""

    def refine(self, stats: Any, X: Rows, members: Members) -> tuple[Self, Any]:
        """Return the family with the choices that need all rows, and the sums under them."""


@runtime_checkable
class HasSubset(Protocol):
    """Families made of others, which know where the columns of each stand."""

    def subset(self, stats: Any, features: Array, columns: Sequence[Any]) -> tuple[Self, Any]:
        """Return family and statistics of some of the columns, in the order given."""


@runtime_checkable
class SharesParameters(Protocol):
    """Families in which a row of one class can change the densities of other classes."""

    @property
    def shared(self) -> bool:
        """Whether it does, with these hyper-parameters."""


@runtime_checkable
class Unmixable(Protocol):
    """Families that cannot be a mixture component."""

    @property
    def not_mixable(self) -> str:
        """The reason and the remedy."""


# -- of densities ----------------------------------------------------------------------------------------------------
@runtime_checkable
class HasParts(Protocol):
    """Densities that are a sum over features."""

    def parts(self, X: Rows) -> Array:
        """Return the log density of each feature, shape (n, K, D); sums over D to `log_density`."""


@runtime_checkable
class HasNamedParts(Protocol):
    """Densities that are a sum over features which are not columns, such as words."""

    def named_parts(self, X: Rows) -> tuple[list[str], Array, Array]:
        """Return names (P,), log densities (n, K, P) and values (n, P) of the features in these rows."""


@runtime_checkable
class HasSelection(Protocol):
    """Densities with a marginal density of some of the features."""

    def select(self, features: Array) -> Density:
        """Return the density of these features."""


@runtime_checkable
class HasDiscriminant(Protocol):
    """Densities whose logarithm is a polynomial of degree two at most."""

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Return A (K, D, D) or None, b (K, D), c (K,): log f(x|k) = xᵀA x + xᵀb + c up to terms that all k share."""


@runtime_checkable
class Composite(Protocol):
    """Families and densities made of others."""

    def supports(self, kind: type) -> bool:
        """Whether the parts have the ability, so that the composite can use it."""


ONE_PART_IS_ENOUGH = (HasChoices, Streams, Refines, SharesParameters, Unmixable, HasFootprint, HasSubset)


def ability(thing: object, kind: type[A]) -> A | None:
    """Return `thing` if it has the ability, its parts included where they matter; otherwise None.

    >>> from deciban import Bernoulli, Binned, Product, Text
    >>> ability(Product({"a": Bernoulli(), "b": Bernoulli()}), HasEvidence) is not None
    True
    >>> ability(Product({"a": Bernoulli(), "b": Text()}), HasEvidence) is None
    True
    """
    if not isinstance(thing, kind) or (isinstance(thing, Composite) and not thing.supports(kind)):
        return None
    return thing


def needs_all_rows(family: object) -> bool:
    """Whether the family iterates over all rows, as mixtures do; it then has no exact leave-one-out."""
    return ability(family, Refines) is not None


def parts_support(parts: Sequence[object], kind: type) -> bool:
    """Whether a composite of these parts has an ability: if one part has it, or if all must have it and do."""
    have = (ability(part, kind) is not None for part in parts)
    return any(have) if kind in ONE_PART_IS_ENOUGH else all(have)
