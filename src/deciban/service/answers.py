"""Answers as JSON values: predictions, decisions, explanations and evaluations of rows by a published model.

Small requests for predictions are answered together. The pile of unsure rows holds rows without a label; the row whose
answer has the greatest entropy is offered next for teaching. Rows are scored again after every lesson. Rows that have
become certain stay, because a later lesson may make them uncertain again; when the pile is full, the most certain rows
are dropped.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import DecibanError, InputError, UnknownLabelError, shortlist
from deciban.evaluate.report import Evaluation
from deciban.evidence.decisions import decide, expected_cost, resolve_cost, resolve_prior, with_unsure
from deciban.evidence.explanation import Explanation, plain
from deciban.evidence.scores import UNITS, convert, llr_over_runner_up, log_posterior, log_probability
from deciban.model.explain import explain
from deciban.model.predictor import Predictor
from deciban.model.row_reader import Row
from deciban.read.batches import Batch
from deciban.service.published import Grouping, Published
from deciban.statistics import Array

if TYPE_CHECKING:
    from deciban.service.messages import Asked
    from deciban.service.teacher import Teacher


@dataclass(frozen=True)
class Options:
    """Options of a request, under the names of the library's arguments."""

    prior: Any = None  # "learnt", "uniform" or an object by class; None for the model's own
    cost: Any = None  # a list of [true, decided, cost]
    unsure: float | None = None
    reject_cost: float | None = None
    unit: str = "decibans"
    over: str | None = None
    against: str | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InputError(f"unit {self.unit!r:.40} is unknown.", remedy=f"Use one of {', '.join(UNITS)}.")


PLAIN = Options()


@dataclass(frozen=True, eq=False)
class Setting:
    """Prior and costs of answers, resolved for the classes as they are shown."""

    grouping: Grouping
    weight: Array  # (K,) prior of the model's classes
    log_prior: Array  # (G,) of the shown classes
    cost: Array  # (G, G)

    @classmethod
    def of(cls, published: Published, options: Options) -> Setting:
        """Resolve prior and costs by the library's rules, for the names that are shown."""
        grouping = published.grouping
        counts = published.counts
        shown = grouping.sums(counts)
        names = np.array(grouping.names, dtype=object)
        if options.prior is None:
            own = resolve_prior(published.prior, np.array(published.model.classes), counts)
            prior, weight = grouping.sums(own), own
        else:
            prior = resolve_prior(options.prior, names, shown)
            weight = counts if counts.sum() > 0 else np.ones(len(counts))
        own_cost = published.cost if grouping.plain else None  # costs of the model name classes that may be merged
        if isinstance(own_cost, Mapping):
            own_cost = {(str(true), str(decided)): value for (true, decided), value in own_cost.items()}
        matrix = resolve_cost(own_cost if options.cost is None else _cost(options.cost), names)
        return cls(grouping, weight, log_probability(prior), matrix)


def scores(published: Published, rows: Sequence[Row], *, strict: bool = True) -> Array:
    """Return calibrated log-likelihoods of the model's classes, (n, K)."""
    predictor = published.predictor
    return predictor.scores(predictor.model.encode(published.reader.table(rows, strict=strict)))


def predictions(
    published: Published, likelihood: Array, options: Options = PLAIN, setting: Setting | None = None
) -> list[dict[str, Any]]:
    """Return for each row the prediction, its probability, the evidence for it, and the probability of every class.

    `setting` holds the resolved prior and costs of the options; it is computed if not given.
    """
    setting = Setting.of(published, options) if setting is None else setting
    log_p, decided, evidence, doubtful = _decided(setting, likelihood, options)
    names = setting.grouping.names
    return [
        {
            "prediction": None if unsure else names[k],
            "probability": p[k],
            "evidence": number(llr),
            "probabilities": dict(zip(names, p)),
            "unsure": unsure,
        }
        for k, p, llr, unsure in zip(decided.tolist(), np.exp(log_p).tolist(), evidence, doubtful)
    ]


def decisions(published: Published, likelihood: Array, options: Options) -> list[dict[str, Any]]:
    """Return for each row the decision, its posterior, llr and expected cost."""
    setting = Setting.of(published, options)
    log_p, chosen, evidence, doubtful = _decided(setting, likelihood, options)
    each = np.arange(len(chosen))
    costs = expected_cost(log_p, setting.cost)
    names = setting.grouping.names
    return [
        {
            "label": None if unsure else names[k],
            "posterior": p,
            "llr": number(llr),
            "expected_cost": cost,
            "expected_costs": dict(zip(names, every)),
        }
        for k, p, llr, cost, every, unsure in zip(
            chosen.tolist(),
            np.exp(log_p[each, chosen]).tolist(),
            evidence,
            costs[each, chosen].tolist(),
            costs.tolist(),
            doubtful,
        )
    ]


def explanations(published: Published, rows: Sequence[Row], options: Options, most: int = 200) -> list[dict[str, Any]]:
    """Return for each row the parts of the evidence for one class over another, which sum to the posterior log-odds."""
    setting = Setting.of(published, options)
    grouping, predictor = setting.grouping, published.predictor
    if len(grouping.names) < 2:
        raise InputError("the model has one class, so there is nothing to compare.", remedy="Teach a second class.")
    table = published.reader.table(rows)
    raw = predictor.scores(predictor.model.encode(table))
    shown = grouping.likelihood(raw, setting.weight)
    joint = log_posterior(shown, setting.log_prior)
    found = []
    for at in range(len(rows)):
        one, other = _pair(grouping.names, joint[at], options)
        pair = tuple(int(grouping.strongest(raw[[at]], setting.weight, g)[0]) for g in (one, other))
        log_weight = log_probability(setting.weight)
        made = explain(predictor, table.take(slice(at, at + 1)), pair, log_weight)  # type: ignore[arg-type]
        found.append(_explained(made, shown[at], setting, one, other, options, most))
    return found


def _explained(
    made: Explanation, shown: Array, setting: Setting, one: int, other: int, options: Options, most: int
) -> dict[str, Any]:
    unit, names = options.unit, setting.grouping.names
    parts = [
        {"name": name, "value": plain(value), "evidence": number(convert(float(nats), unit))}
        for name, value, nats in zip(made.names, made.values[0], made.parts[0])
        if nats != 0
    ]
    parts.sort(key=lambda part: -abs(float(part["evidence"])))
    rest = parts[most:]
    if rest:
        total = math.fsum(float(part["evidence"]) for part in rest)
        parts = [*parts[:most], {"name": f"{len(rest)} more", "value": None, "evidence": number(total)}]
    parts += [
        {"name": name, "value": None, "evidence": number(convert(float(nats[0]), unit)), "kind": "other"}
        for name, nats in made.other.items()
    ]
    evidence = _difference(shown[one], shown[other])
    merged = _difference(evidence, float(made.total[0]))
    if not setting.grouping.plain and abs(merged) > 1e-9:
        name = "classes shown as one"
        parts.append({"name": name, "value": None, "evidence": number(convert(merged, unit)), "kind": "other"})
    prior = _difference(setting.log_prior[one], setting.log_prior[other])
    odds = evidence + prior if math.isfinite(prior) else prior
    return {
        "over": names[one],
        "against": names[other],
        "unit": unit,
        "parts": parts,
        "evidence": number(convert(evidence, unit)),
        "prior": number(convert(prior, unit)),
        "posterior": number(convert(odds, unit)),
    }


def evaluation(published: Published, likelihood: Array, labels: Sequence[Any], options: Options) -> dict[str, Any]:
    """Return the figures of rows whose classes are known."""
    setting = Setting.of(published, options)
    names = setting.grouping.names
    place = {name: at for at, name in enumerate(names)}
    codes = []
    for row, label in enumerate(labels):
        at = place.get(published.names.name(label)) if isinstance(label, str | int) else None
        at = place.get(str(label)) if at is None else at
        if at is None:
            raise UnknownLabelError(
                f"the model has no class {str(label)[:80]!r}; it has {shortlist(names, 10)}.",
                row=row,
                remedy="Correct the spelling, or teach the class first.",
            )
        codes.append(at)
    shown = setting.grouping.likelihood(likelihood, setting.weight)
    made = Evaluation(shown, np.array(codes, dtype=np.intp), names, np.exp(setting.log_prior), setting.cost)
    return cleaned(made.to_dict())


def cleaned(value: Any) -> Any:
    """Return values that JSON can hold: NaN as null, infinities as text, keys as text."""
    if isinstance(value, Mapping):
        return {str(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    if hasattr(value, "tolist"):
        return cleaned(value.tolist())
    return number(value) if isinstance(value, float) else value


def number(value: float) -> float | str | None:
    """Return a value that JSON can hold for a number: NaN as null, infinities as "inf" and "-inf".

    >>> number(float("-inf")), number(1.5)
    ('-inf', 1.5)
    """
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else "inf" if value > 0 else "-inf"


def _difference(a: float, b: float) -> float:
    return 0.0 if a == b else float(a) - float(b)


def _decided(setting: Setting, likelihood: Array, options: Options) -> tuple[Array, Array, list[float], list[bool]]:
    """Return log posteriors (n, G), decided classes, the evidence for them, and whether a decision is unsure."""
    shown = setting.grouping.likelihood(likelihood, setting.weight)
    log_p = log_posterior(shown, setting.log_prior)
    chosen = decide(log_p, setting.cost)
    evidence = convert(llr_over_runner_up(shown, chosen, setting.log_prior), options.unit).tolist()
    unsure = [False] * len(chosen)
    if options.unsure is not None or options.reject_cost is not None:
        unsure = with_unsure(log_p, chosen, options.unsure, reject_cost=options.reject_cost, cost=setting.cost).tolist()
    return log_p, chosen, evidence, unsure


def _cost(given: Any) -> dict[tuple[str, str], float]:
    """Convert a list of [true, decided, cost] into costs by (true, decided)."""
    return {(str(true), str(decided)): cost for true, decided, cost in given}


def _pair(names: Sequence[str], log_p: Array, options: Options) -> tuple[int, int]:
    """Return the classes that evidence is for and against: those of the options, otherwise the two most probable."""
    place = {name: at for at, name in enumerate(names)}
    for name in (options.over, options.against):
        if name is not None and name not in place:
            raise UnknownLabelError(
                f"the model has no class {name[:80]!r}; it has {shortlist(names, 10)}.", remedy="Correct the spelling."
            )
    ranked = np.argsort(-log_p, kind="stable").tolist()
    one = place[options.over] if options.over is not None else None
    other = place[options.against] if options.against is not None else None
    if one is None:
        one = next(k for k in ranked if k != other)
    if other is None:
        other = next(k for k in ranked if k != one)
    if one == other:
        raise InputError(f"the evidence for {names[one]!r} over itself is 0.", remedy="Name two different classes.")
    return one, other


# -- small requests ----------------------------------------------------------------------------------------------------
SMALL_ROWS, SMALL_BYTES = 64, 2**16  # requests up to this size are answered together, in the event loop


class SmallRequests:
    """Answers small requests for predictions together: those that arrive in one turn of the event loop.

    Prior and costs of requests without options are resolved once for each published model.
    """

    def __init__(self, teacher: Teacher) -> None:
        self.teacher = teacher
        self._waiting: list[tuple[Asked, asyncio.Future[Any]]] = []
        self._plain: tuple[Published, Setting] | None = None

    def ask(self, asked: Asked) -> asyncio.Future[Any]:
        """Return a future of the published model and the answers."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._answer)
        self._waiting.append((asked, future))
        return future

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        published = self.teacher.published
        start = 0
        while start < len(waiting):
            end, rows = start, 0
            while end < len(waiting) and (end == start or rows + len(waiting[end][0].rows) <= SMALL_ROWS):
                rows += len(waiting[end][0].rows)
                end += 1
            self._answer_some(waiting[start:end], published)
            start = end

    def _answer_some(self, group: list[tuple[Asked, asyncio.Future[Any]]], published: Published) -> None:
        try:
            likelihood = scores(published, [row for asked, _ in group for row in asked.rows])
            plain = all(asked.options == PLAIN for asked, _ in group)
            together = predictions(published, likelihood, PLAIN, self._setting(published)) if plain else None
        except DecibanError as error:
            if len(group) == 1:
                self._settle(group[0][1], error)
                return
            for one in group:
                self._answer_some([one], published)
            return
        except Exception as error:
            for _, future in group:
                self._settle(future, error)
            return
        at = 0
        for asked, future in group:
            rows = slice(at, at + len(asked.rows))
            at = rows.stop
            try:
                made = (
                    together[rows] if together is not None else predictions(published, likelihood[rows], asked.options)
                )
                self._settle(future, (published, made))
            except Exception as error:  # an internal error refuses this request alone
                self._settle(future, error)

    def _setting(self, published: Published) -> Setting:
        """Return prior and costs of requests without options."""
        if self._plain is None or self._plain[0] is not published:
            self._plain = published, Setting.of(published, PLAIN)
        return self._plain[1]

    @staticmethod
    def _settle(future: asyncio.Future[Any], result: Any) -> None:
        if future.done():
            return
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)


# -- the pile of unsure rows -------------------------------------------------------------------------------------------
MOST_ROWS = 10_000
MOST_BYTES = 64 * 2**20
MOST_LESSONS = 4096  # largest number of lessons that `lessons_to_change` tries


@dataclass(frozen=True, eq=False)
class Pile:
    """Rows with their entropy under one version of the model."""

    rows: tuple[Row, ...] = ()
    keys: tuple[str, ...] = ()  # the rows as text
    entropy: Array | None = None  # (n,) in nats; None before it is computed
    version: int = -1


class UnsureRows:
    """The pile of unsure rows of a service; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._pile = Pile()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._pile.rows)

    def add(self, rows: Sequence[Row], published: Published) -> int:
        """Add rows that are not in the pile, and return how many there are now."""
        with self._lock:
            pile = self._pile
            held = set(pile.keys)
            kept = map(published.reader.kept, rows)
            new = {key: row for row in kept if (key := _key(row)) not in held}
            self._pile = Pile((*pile.rows, *new.values()), (*pile.keys, *new))
            if len(self._pile.rows) > MOST_ROWS or sum(map(len, self._pile.keys)) > MOST_BYTES:
                self._pile = _reduced(_scored(self._pile, published))
            return len(self._pile.rows)

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove rows, for example because they were taught."""
        gone = {_key(row) for row in rows}
        with self._lock:
            pile = self._pile
            kept = [at for at, key in enumerate(pile.keys) if key not in gone]
            if len(kept) < len(pile.keys):
                self._pile = _taken(pile, kept)

    def next(self, published: Published, most: int = 1) -> list[dict[str, Any]]:
        """Return the rows of greatest entropy, with their predictions."""
        with self._lock:
            if self._pile.version != published.version or self._pile.entropy is None:
                self._pile = _scored(self._pile, published)
            pile = self._pile
        if not pile.rows or pile.entropy is None:
            return []
        best = np.argsort(-pile.entropy, kind="stable")[:most].tolist()
        rows = [pile.rows[at] for at in best]
        answers = predictions(published, scores(published, rows, strict=False))
        return [{"row": row, **answer} for row, answer in zip(rows, answers)]


def _key(row: Row) -> str:
    return dumps(row, sort_keys=True, ensure_ascii=False)


def _scored(pile: Pile, published: Published) -> Pile:
    """Compute the entropy of the posterior of every row."""
    if not pile.rows:
        return replace(pile, version=published.version, entropy=np.zeros(0))
    setting = Setting.of(published, PLAIN)
    shown = setting.grouping.likelihood(scores(published, pile.rows, strict=False), setting.weight)
    joint = shown + setting.log_prior
    joint -= joint.max(axis=1, keepdims=True)
    p = np.exp(joint)
    total = p.sum(axis=1)
    terms = np.where(p > 0, p * np.where(p > 0, joint, 0.0), 0.0).sum(axis=1)
    return replace(pile, version=published.version, entropy=np.log(total) - terms / total)


def _reduced(pile: Pile) -> Pile:
    """Return the less certain half of a full pile."""
    order = np.argsort(-np.asarray(pile.entropy), kind="stable")[: max(1, MOST_ROWS // 2)]
    kept, size = [], 0
    for at in order.tolist():
        size += len(pile.keys[at])
        if size > MOST_BYTES // 2:
            break
        kept.append(at)
    return _taken(pile, sorted(kept))


def _taken(pile: Pile, kept: list[int]) -> Pile:
    entropy = None if pile.entropy is None else pile.entropy[kept]
    return Pile(tuple(pile.rows[at] for at in kept), tuple(pile.keys[at] for at in kept), entropy, pile.version)


def lessons_to_change(published: Published, row: Row, name: str) -> int | None:
    """Return how many lessons of this row as one class make that class its prediction; None if no number does.

    The row is learnt with growing weight on a copy of the model, and the smallest whole weight is found by bisection.
    """
    model, reader = replace(published.model, ledger=None), published.reader
    table = reader.table([row], strict=False)
    label = published.names.label(name, model.classes)
    own = next((each for each in model.classes if str(each) == label), None)
    if own is None:
        return None

    def changes(weight: int) -> bool:
        labels = np.array([own], dtype=np.int64 if isinstance(own, int) else object)
        taught = model.learn(model.lesson(Batch(table, labels, np.array([float(weight)]))))
        later = replace(published, predictor=Predictor(taught))
        found = predictions(later, later.predictor.scores(taught.encode(table)))
        return found[0]["prediction"] == name

    try:
        if predictions(published, scores(published, [row], strict=False))[0]["prediction"] == name:
            return 0
        high = 1
        while not changes(high):
            high *= 4
            if high > MOST_LESSONS:
                return None
        low = high // 4
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if changes(middle) else (middle, high)
    except DecibanError:
        return None
    return high
