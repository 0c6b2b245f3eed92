"""A mixture as the density of each class: the contract of a family.

Without a guess, `collect` fits every class by EM; with one, it is a single E-step under it, so sums add. `choose`
freezes the guess, `refined` improves it over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from deciban.errors import InputError, NotAvailableError
from deciban.families.product import subset
from deciban.families.protocol import Rule
from deciban.latent.components import (
    NOT_EXACT,
    MixtureDensities,
    MixtureDensity,
    MixtureStats,
    MixtureSums,
    component_axis,
    read,
)
from deciban.latent.expectation import Rows
from deciban.latent.mixture_fit import Task
from deciban.statistics import Array, Axis, Members


class ClassMixtures:
    """What a mixture does as a family; its fields are those of `Mixture`."""

    component: Any
    n_components: int
    pseudo_count: float
    rule: Rule
    start: str
    n_starts: int
    max_iter: int
    tol: float
    seed: int
    guess: MixtureStats | None

    # -- rows: as the component takes them ---------------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Any:
        """As the component encodes its rows."""
        return self.component.encode(X, columns, None if stats is None else stats.mixing.components)

    def check(self, X: Any, columns: Sequence[str], learning: bool = False) -> None:
        """As the component checks its rows."""
        self.component.check(X, columns, learning)

    # -- sums ----------------------------------------------------------------------------------------------------------
    def collect(self, X: Any, members: Members) -> MixtureStats:
        """The sums of every class's components: under the guess, or at the end of EM where there is none yet."""
        if self.guess is not None:
            return self._under_guess(X, members)
        pooled = self.component.collect(X, members)
        if not pooled.finite:  # the caller will say which value it was
            return self._each_class(X, members, _all_in_one)
        frozen = replace(self, component=self.component.choose(pooled, (X, members)))  # type: ignore[type-var]
        return frozen._each_class(X, members, frozen._fit_class)

    def choose(self, stats: MixtureStats, rows: tuple[Any, Members] | None = None, rule: Rule = "mean") -> Self:
        """Freeze the component's choices, and the sums of EM as the guess for rows to come."""
        if self.guess is not None:
            return self
        if rows is None:
            raise NotAvailableError("a mixture is chosen by EM over rows, not from sums alone. Refit it.")
        component = self.component.choose(self.component.collect(*rows), rows)
        return replace(self, component=component, guess=stats)  # type: ignore[type-var]

    def refine(self, stats: MixtureStats, X: Any, members: Members) -> tuple[Self, MixtureStats]:
        """EM over all rows, from the guess of the first ones; classes that had none begin anew."""
        better = self._each_class(X, members, self._fit_class)
        return replace(self, guess=better), better  # type: ignore[type-var]

    def chosen_by_labels(self) -> list[str]:
        return []

    def supports(self, kind: type) -> bool:
        return True

    def keep_choices(self, chosen: Any, with_rows: bool) -> Self:
        """Neither the guess nor what went into it can be taken anew from sums."""
        if with_rows:
            return self
        return replace(self, component=chosen.component, guess=chosen.guess)  # type: ignore[type-var]

    def subset(self, stats: MixtureStats, features: Array, columns: Sequence[Any]) -> tuple[Self, MixtureStats]:
        """The components of some of the features."""
        component, sums = subset(self.component, stats.mixing.components, features, columns)
        fewer = replace(stats, mixing=replace(stats.mixing, components=sums))
        return replace(self, component=component, guess=fewer), fewer  # type: ignore[type-var]

    # -- readings ----------------------------------------------------------------------------------------------
    def estimate(self, stats: MixtureStats, rule: Rule) -> MixtureDensities:
        """Each class's mixture; components share parameters within their class only."""
        names = stats.labels["class"].names  # type: ignore[union-attr]
        return MixtureDensities(tuple(self._read(stats, name, rule) for name in names))

    def _read(self, stats: MixtureStats, name: Any, rule: Rule) -> MixtureDensity:
        return read(self.component, stats.mixing.select("class", stats.living(name)), rule, self.pseudo_count)

    def leave_one_out(self, stats: Any, X: Any, members: Members, rule: Rule, density: Any = None) -> Array:
        """Refused: other rows' responsibilities would change with it."""
        raise NotAvailableError(NOT_EXACT)

    # -- class by class ----------------------------------------------------------------------------------------------
    def _each_class(self, X: Any, members: Members, act: Callable[[Rows, Any, Axis], MixtureSums]) -> MixtureStats:
        classes, mixing = members.classes, None
        everything = component_axis(classes.names, classes.declared, self.n_components)
        for k, at, weight in members.groups():
            here = at[weight > 0] if len(at) else at
            kept = weight[weight > 0]
            rows = Rows(self.component, X if len(here) == X.shape[0] else X[here], None if (kept == 1).all() else kept)
            names = everything.take(np.arange(k * self.n_components, (k + 1) * self.n_components))
            sums = act(rows, classes.names[k], names) if len(here) else self._nothing(rows, names)
            mixing = sums if mixing is None else mixing + sums
        return MixtureStats({"class": classes}, members.weights(), mixing)

    def _nothing(self, rows: Rows, names: Axis) -> MixtureSums:
        return rows.collect(rows.X, np.zeros((len(rows), names.size)), names)

    def _fit_class(self, rows: Rows, name: Any, names: Axis) -> MixtureSums:
        if len(rows) < self.n_components:
            raise InputError(
                f"class {name!r} has {len(rows)} rows for {self.n_components} components. "
                "Ask for fewer components, or learn more rows of that class."
            )
        start: Any = self.start
        if self.guess is not None and self.guess.knows(name):
            start = self._read(self.guess, name, self.rule)
            names = names.take(np.arange(len(start.log_weights)))
        task = Task(rows, self.rule, self.pseudo_count)
        return task.fit(names, start, self.n_starts, self.max_iter, self.tol, np.random.default_rng(self.seed))[0]

    def _under_guess(self, X: Any, members: Members) -> MixtureStats:
        guess = self.guess
        assert guess is not None

        def expect(rows: Rows, name: Any, names: Axis) -> MixtureSums:
            if not len(guess.places(name)):
                raise NotAvailableError(
                    f"class {name!r} is new, and a mixture learns a class by EM over its rows. Refit with all classes."
                )
            known = guess.mixing.labels["class"].take(guess.living(name))
            sums, _ = rows.expect(self._read(guess, name, self.rule), known)
            if sums is None:
                raise InputError(f"class {name!r}: no component explains some of these rows at all. Refit with them.")
            return sums

        return self._each_class(X, members, expect)


def _all_in_one(rows: Rows, name: Any, names: Axis) -> MixtureSums:
    return rows.collect_shares(names.take(np.arange(1)), lambda begin, end: np.ones((end - begin, 1)))
