"""The contract of families and densities.

A family describes how one class produces data. It implements

    collect(rows, members) -> Stats        the sums it needs of the data, for all K classes at once
    estimate(stats, rule) -> Density       parameters from the sums and the prior, never from the data

and inherits fit with or without classes, learning, unlearning, merging, weights, growth, k-fold, leave-one-out (by
subtraction; most families override it with an identity), mixtures, files, and every law in tests/laws. What only some
families can do is an ability (see `deciban.families.abilities`). Two abilities pass on values that are defined here:
posteriors of parameters, and rows in parts, such as those on the workers of a cluster.

`rows` inside a family is what its `encode` returned: a float array with NaN for missing values, a CSR matrix, or codes.
`encode` checks what can be checked cheaply. Other bad values make a sum or a score that is not finite; `check` is then
called to name the value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
)

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import DecibanError, EmptyClassError, HyperparameterError, NoModeError
from deciban.families.abilities import RunningSums, Streams, ability
from deciban.families.parameters import HasParameters
from deciban.read.arrays import refuse_infinite
from deciban.read.tables import Columns, dense_numbers
from deciban.statistics import Array, Axis, Labels, Members, Stats
from deciban.statistics.members import collect_checked

if TYPE_CHECKING:
    from deciban.families.fitted import Fitted

Rule: TypeAlias = Literal["ml", "map", "mean", "predictive"]
RULES: tuple[Rule, ...] = get_args(Rule)
S = TypeVar("S", bound=Stats)
F = TypeVar("F", bound="Family[Any]")
Input: TypeAlias = ArrayLike | Columns  # columns as given: array-like, sparse matrix, frame, texts, selected columns
Rows: TypeAlias = Any  # what a family's `encode` returns: an array, a CSR matrix, codes, documents or blocks


# -- densities and families --------------------------------------------------------------------------------------------
class Density(ABC):
    """K densities side by side, ready to score rows."""

    # field → its axes (K groups, D features, M cells, T tables, S matrices: one, or one for each group) and the kind of
    # its numbers (log, count, positive, real): "K D positive"; used to check densities in files
    shapes: ClassVar[Mapping[str, str]] = {}

    @property
    @abstractmethod
    def K(self) -> int:
        """Number of groups."""

    @abstractmethod
    def log_density(self, X: Rows) -> Array:
        """Return log f(x|k), shape (n, K), without the terms of `log_base`."""

    @abstractmethod
    def sample(self, codes: Array, rng: np.random.Generator) -> Rows:
        """Draw one row from group codes[i] for each i."""

    def log_base(self, X: Rows) -> Array | float:
        """Return the terms that are equal for all groups, such as a multinomial coefficient, shape (n,)."""
        return 0.0

    def encode(self, X: Input, columns: Sequence[str]) -> Rows:
        """Convert columns as given to what this density scores; used for densities that are known, not learnt."""
        return dense_numbers(X, columns)


@dataclass(frozen=True, eq=False)
class Family(HasParameters, ABC, Generic[S]):
    """Distribution of the rows of a class; holds hyper-parameters only, and is frozen."""

    # hyper-parameter that may be an array → its axes and the kind of its numbers, as for densities: "D | 1 positive"
    shapes: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def collect(self, X: Rows, members: Members) -> S:
        """Collect the statistics of encoded rows, for every class at once.

        Parameters
        ----------
        X : rows
            What `encode` returned.
        members : Members
            The class and the weight of each row.

        Returns
        -------
        Stats
            Sums with named axes; they add, subtract and scale.
        """

    @abstractmethod
    def estimate(self, stats: S, rule: Rule) -> Density:
        """Estimate the density of every class from the sums and the prior.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.
        rule : {"ml", "map", "mean", "predictive"}
            Maximum likelihood, posterior mode, posterior mean, or the parameters integrated out.

        Returns
        -------
        Density
            One density per class, ready to score encoded rows.
        """

    def encode(self, X: Input, columns: Sequence[str], stats: S | None = None) -> Rows:
        """Convert columns as given to what this family works on.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str or Columns
            The columns of this family.
        columns : sequence of str
            Names of the columns, for error messages.
        stats : Stats, optional
            Sums whose names (categories, words) are known already.

        Returns
        -------
        rows
            A float array with NaN for missing values, a CSR matrix, codes, or another form of rows.
        """
        return dense_numbers(X, columns)

    def check(self, X: Rows, columns: Sequence[str], learning: bool = False) -> None:
        """Check that this family can produce the values.

        Parameters
        ----------
        X : rows
            What `encode` returned.
        columns : sequence of str
            Names of the columns, for the error message.
        learning : bool, default=False
            Whether the rows are to be learnt; some families score rows that they cannot learn.

        Raises
        ------
        DomainError
            If there is such a value; the error names the first one.
        """
        refuse_infinite(X, columns)

    def choose(self, stats: S, rows: tuple[Rows, Members] | None = None, rule: Rule = "mean") -> Self:
        """Make the open choices that are frozen at the first fit, such as the origin of sums or a structure.

        They decide what is summed, or are made by labels. Values that follow from the sums are left to `resolve`.

        Parameters
        ----------
        stats : Stats
            Sums of the first rows.
        rows : tuple of (rows, Members), optional
            These rows, encoded, for choices that are made by leaving rows out.
        rule : {"ml", "map", "mean", "predictive"}, default="mean"
            Rule under which such choices are judged.

        Returns
        -------
        Family
            The family with its choices made; itself if none is open.
        """
        return self

    def resolve(self, stats: S) -> Self:
        """Fill the open values that are derived from the sums, such as the mean of the prior.

        `estimate` does so itself, from the sums that it is given. Leave-one-out, evidences, EM and influence hold the
        values of the whole sums, so they work with a resolved family.

        Parameters
        ----------
        stats : Stats
            Sums of the rows of each class.

        Returns
        -------
        Family
            The family without open values; itself if none is open.
        """
        return self

    def leave_one_out(self, stats: S, X: Rows, members: Members, rule: Rule, density: Density | None = None) -> Array:
        """Score each row by the sums without it.

        A row is removed with all of its weight. The result equals a fit without the row; most families compute it
        by an identity, without refitting.

        Parameters
        ----------
        stats : Stats
            Sums that contain the rows.
        X : rows
            What `encode` returned.
        members : Members
            The class and the weight of each row.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the sums.
        density : Density, optional
            The density of `stats` under `rule`, for callers that have it.

        Returns
        -------
        ndarray of shape (n, K)
            Row i holds log f(x_i|k) estimated without row i; −inf where its class has no density without it.
        """
        family = self.resolve(stats)
        return score_by_each(family, stats, sums_without_each(family, stats, X, members), X, members, rule)

    def select(self, features: Array) -> Self:
        """Restrict the prior to some of the features.

        Parameters
        ----------
        features : ndarray of int
            Positions of the features to keep.

        Returns
        -------
        Family
            The family with the prior of these features.
        """
        return self

    def fit(self, X: Input, sample_weight: ArrayLike | None = None) -> Fitted:
        """Fit without classes, for example one coin or one Gaussian.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or list of str
            Rows to learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; 1 if None.

        Returns
        -------
        Fitted
            The family with its sums; learning from it returns another value.
        """
        from deciban.families.fitted import Fitted

        return Fitted.of(self, X, sample_weight)

    @property
    def accepts(self) -> frozenset[str]:
        """Kinds of input beyond complete rows of numbers ≥ 0: "gaps" (missing values), "negative", "sparse", "text"."""
        return frozenset({"gaps", "negative"})

    def __sklearn_clone__(self) -> Self:
        return self  # immutable, so that no copy is needed

    def __dir__(self) -> list[str]:
        """List names for completion: hyper-parameters, contract and constructors, without methods of abilities."""
        contract = [name for cls in (Family, HasParameters) for name in vars(cls)]
        made = (classmethod, staticmethod)
        makers = [name for cls in type(self).__mro__ for name, value in vars(cls).items() if isinstance(value, made)]
        private = [name for name in super().__dir__() if name.startswith("_")]
        return sorted({*contract, *makers, *self.get_params(deep=False), *private})

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return all(_alike(getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.compare)

    __hash__ = None  # type: ignore[assignment]


def replaced(family: F, **hyper: object) -> F:
    """Return the family with other hyper-parameters; unknown names raise HyperparameterError.

    A field with the metadata `follows` was chosen together with another one and is open again when that one changes.
    """
    known = {f.name: f for f in fields(family)}
    for name in hyper:
        if name not in known:
            has = ", ".join(sorted(known)) or "none"
            raise HyperparameterError(f"{type(family).__name__} has no hyper-parameter {name!r}; it has {has}.")
    open_again = {
        name: f.default
        for name, f in known.items()
        if f.metadata.get("follows") in hyper and name not in hyper and f.default is not MISSING
    }
    return replace(family, **open_again, **hyper)


def brief(family: Family[Any]) -> str:
    """Return a short text for a family, without defaults and without arrays that were frozen at the first fit.

    >>> from deciban import Categorical
    >>> brief(Categorical(2.0))
    'Categorical(pseudo_count=2.0)'
    """
    if "__repr__" in vars(type(family)) and not getattr(type(family).__repr__, "__wrapped__", None):
        return repr(family)
    plain = [(f.name, getattr(family, f.name), f.default) for f in fields(family) if f.repr]
    unusual = [
        (name, value) for name, value, default in plain if not isinstance(value, np.ndarray) and value != default
    ]
    return f"{type(family).__name__}({', '.join(f'{name}={value!r}' for name, value in unusual)})"


def set_input_tags(tags: Any, families: Any) -> None:
    """Set scikit-learn's tags of the input that a family, a dict of families, or "auto" takes."""
    parts = families.values() if isinstance(families, Mapping) else [families]
    accepts = [each.accepts for each in parts if isinstance(each, Family)]
    tags.input_tags.sparse = all("sparse" in each for each in accepts)
    tags.input_tags.allow_nan = all("gaps" in each for each in accepts)
    tags.input_tags.positive_only = any({"negative", "text"}.isdisjoint(each) for each in accepts)
    tags.input_tags.string = any("text" in each for each in accepts) or not accepts


def check_rule(rule: str) -> None:
    """Refuse a rule that is not one of the four."""
    if rule not in RULES:
        raise HyperparameterError(f"rule={rule!r} is not a rule. Choose one of {', '.join(RULES)}.")


def classes_of(labels: Mapping[str, Labels]) -> Axis:
    """Return the classes among the axes of statistics; their axis is never ragged."""
    return cast(Axis, labels["class"])


def require_rows(weight: Array, classes: Axis, family: str) -> None:
    """Refuse a maximum-likelihood estimate of a class without rows; weight has shape (K,) or (K, D)."""
    empty = np.argwhere(weight <= 0)
    if len(empty):
        at = empty[0]
        name = classes.names[at[0]]
        where = f"class {name!r}" if len(at) == 1 else f"class {name!r}, feature {at[1]}"
        raise EmptyClassError(
            f"{where} has no rows, so rule 'ml' has no {family} estimate for it.",
            columns=None if len(at) == 1 else [int(at[1])],
            label=name,
            remedy="Use rule 'mean', 'map' or 'predictive', which use the prior, or learn rows of that class.",
        )


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is b or (a is not None and b is not None and np.array_equal(a, b))
    return type(a) is type(b) and a == b


def sums_without_each(family: Family[S], stats: S, X: Rows, members: Members) -> Iterator[S]:
    """Yield the sums without each row."""
    for i in range(len(members)):
        yield stats - family.collect(X[i : i + 1], members.take(slice(i, i + 1)))


def score_by_each(family: Family[S], stats: S, without: Iterable[S], X: Rows, members: Members, rule: Rule) -> Array:
    """Score each row by its own sums, those `without` the row, shape (n, K)."""
    scores = np.empty((len(members), members.K))
    for i, left in enumerate(without):
        row = X[i : i + 1]
        try:
            scores[i] = family.estimate(left, rule).log_density(row)[0]
        except DecibanError:  # the class has no density without the row
            scores[i] = family.estimate(stats, rule).log_density(row)[0]
            scores[i, members.own_codes()[i]] = -np.inf
    return scores


# -- posteriors of parameters: what `HasPosterior.posterior` returns ---------------------------------------------------
@dataclass(frozen=True, eq=False)
class Marginal:
    """Marginal posteriors of an array of parameters.

    Parameters
    ----------
    mean : ndarray
        Posterior means.
    sd : ndarray
        Posterior standard deviations.
    distribution : frozen SciPy distribution, optional
        The marginal distributions, over the same array.
    draws : ndarray of shape (n_draws, …), optional
        Draws from the posterior, where there is no distribution.
    modes : ndarray, optional
        Posterior modes; NaN where there is none.

    Examples
    --------
    >>> from scipy import stats
    >>> Marginal.exact(stats.beta(7, 5), mode=np.array(0.6))
    Marginal(mean 0.5833, sd 0.1367)
    """

    mean: Array
    sd: Array
    distribution: Any = None  # frozen SciPy distribution
    draws: Array | None = None
    modes: Array | None = None

    @classmethod
    def exact(cls, distribution: Any, mode: Array | None = None) -> Marginal:
        """Make a marginal from a frozen SciPy distribution."""
        return cls(np.asarray(distribution.mean()), np.asarray(distribution.std()), distribution, None, mode)

    @classmethod
    def sampled(cls, draws: Array, mode: Array | None = None, mean: Array | None = None) -> Marginal:
        """Make a marginal from draws of the posterior."""
        centre = draws.mean(axis=0) if mean is None else np.asarray(mean)
        return cls(centre, draws.std(axis=0), None, draws, mode)

    @property
    def variance(self) -> Array:
        """Posterior variances."""
        return self.sd**2

    @property
    def mode(self) -> Array:
        """Posterior modes; NoModeError if there is none."""
        if self.modes is None or np.isnan(self.modes).any():
            raise NoModeError("this posterior has no mode (a pseudo-count below 1 and a count of 0). Use the mean.")
        return self.modes

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the equal-tailed credible interval."""
        tails = (1 - level) / 2, (1 + level) / 2
        if self.distribution is not None:
            low, high = (np.asarray(self.distribution.ppf(tail)) for tail in tails)
            return low, high
        low, high = np.quantile(np.asarray(self.draws), tails, axis=0)
        return low, high

    def __repr__(self) -> str:
        if np.ndim(self.mean) == 0 or np.size(self.mean) == 1:
            return f"Marginal(mean {float(np.squeeze(self.mean)):.4g}, sd {float(np.squeeze(self.sd)):.4g})"
        return f"Marginal({' × '.join(map(str, np.shape(self.mean)))} parameters)"


@dataclass(frozen=True, eq=False)
class Posterior:
    """Marginals of the parameters of a family by name; shape (K, D) unless the family documents another one."""

    marginals: Mapping[str, Marginal]

    def __getitem__(self, name: str) -> Marginal:
        return self.marginals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.marginals)

    def __getattr__(self, name: str) -> Any:
        """Forward `.mean`, `.sd`, `.interval(.9)` … to the marginal where there is only one parameter."""
        marginals = self.__dict__.get("marginals", {})
        if len(marginals) == 1 and not name.startswith("_"):
            return getattr(next(iter(marginals.values())), name)
        raise AttributeError(f"{name!r}; the parameters are {', '.join(marginals)}: use posterior[name].{name}")

    def __repr__(self) -> str:
        return f"Posterior({', '.join(f'{name}: {marginal!r}' for name, marginal in self.marginals.items())})"


# -- sums of a stream --------------------------------------------------------------------------------------------------
class SumAccumulator:
    """A family and the sums of all batches so far; adding a batch makes new arrays.

    >>> import numpy as np
    >>> from deciban import Poisson
    >>> sums = SumAccumulator(Poisson(), np.array([[1.0], [2.0]]), Members.one_group(2), ["calls"])
    >>> sums.add(np.array([[4.0]]), Members.one_group(1))
    >>> sums.total().total
    array([[7.]])
    """

    def __init__(self, family: Family[Any], X: Rows, members: Members, columns: Sequence[str]) -> None:
        self.family, self.columns = family, columns
        self.stats = collect_checked(family, X, members, columns)

    @property
    def known(self) -> Any:
        """Statistics whose names are used to encode later rows."""
        return self.stats

    def choose(self, X: Rows, members: Members, rule: Rule) -> None:
        """Let the family make its open choices from the first rows and their sums."""
        self.family = self.family.choose(self.stats, (X, members), rule)

    def add(self, X: Rows, members: Members) -> None:
        """Add the sums of a batch."""
        self.stats = self.stats + collect_checked(self.family, X, members, self.columns)

    def total(self) -> Any:
        """Return the statistics of all batches."""
        return self.stats


def accumulator(family: Family[Any], X: Rows, members: Members, columns: Sequence[str]) -> RunningSums:
    """Start the sums of a stream with its first rows; batches are added in place if the family supports it."""
    streams = ability(family, Streams)
    if streams is None:
        return SumAccumulator(family, X, members, columns)
    return streams.accumulator(X, members, columns)


# -- rows in parts that stay where they are ----------------------------------------------------------------------------
class Passes(Protocol):
    """Parts of rows that stay where they are, such as on the workers of a cluster."""

    def kept(self, work: Callable[[Any], Any]) -> Passes:
        """Apply `work` to each part; the results stay where the parts are."""

    def total(self, work: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return the sums of `work(part)` over all parts; None adds nothing."""

    def each(self, work: Callable[[Any], Any]) -> list[Any]:
        """Return `work(part)` of all parts in order."""

    def names(self) -> list[str]:
        """Return the names of the parts, for messages."""


class LabelledPart(NamedTuple):
    """Encoded rows of one part, with their classes."""

    rows: Any  # what the family's `encode` returned; None if the part has no rows
    members: Members | None


@dataclass(frozen=True)
class BlockOfPart:
    """Takes the rows of one block from those of a product."""

    at: int  # position of the block

    def __call__(self, part: LabelledPart) -> LabelledPart:
        return part if part.rows is None else part._replace(rows=part.rows.parts[self.at])
