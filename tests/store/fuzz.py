"""Changes model files in many ways, loads them and uses what was loaded: `python tests/store/fuzz.py --seconds 60`.

Two layers are changed in turn. The bytes of a file are damaged: it must be refused, since its digests differ. The
content of a file (JSON and arrays) is changed and signed again: it must be refused with a `ModelFileError`, or be a
model whose every use returns, or raises a `ModelFileError` or one of `OF_USE`, which are no errors of the file. Another
exception, a crash, more than 5 seconds, or more memory than 10 times the file and 200 MB is a fault.

The seeds are the golden files, written again by this version, a classifier of each case of `tests/cases.py`, with its
sums and released, and the drop-ins for scikit-learn that can be saved. Cases run in a process of their own, which is
watched: it is killed and started again when a case takes too long. A case is determined by the seed and its number:
`--seed 7 --case 1234` repeats one and shows its error.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import mmap
import os
import pickle
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from copy import copy, deepcopy
from functools import cache
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from cases import CASES
from deciban import GenerativeClassifier, load, release, save
from deciban import sklearn as drop_in
from deciban.errors import (
    CostError,
    DomainError,
    EmptyClassError,
    InputError,
    MergeError,
    ModelFileError,
    NoModeError,
    NotAvailableError,
    PriorError,
    SingularError,
    UnlearnError,
)
from deciban.sklearn.dropin import DropIn
from deciban.store import container, describe
from store.answers import given

LIMIT = 5.0  # seconds of CPU time for one case
SOME = 3  # uses of each model that loads
MOST_PLACES = 10**6  # of a JSON tree
WAIT = 60.0  # seconds by the clock for one case: other processes may take the CPU
ROOM = 200 * 2**20  # bytes of memory, beyond 10 times the file
GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.deciban"))
KEYS = {"ledger-1": "the golden key"}
INPUT = {"mixed-1": "object", "mixed-released-1": "object", "words-1": "object"}
NUMBERS = (0, 1, -1, 2, 3, 7, 32, 2**15, 2**31, 2**40, 2**53, 2**63, 10**30, 0.5, -0.5, -1.5, 1e-300, 1e300)
TEXTS = ("", "F64", "class", "\udcff", "a" * 300, "((?:a+)+)\\b!", "auto", "learnt", "ml", "map", "predictive", "None")
PLAIN = (True, False, None, [], {}, [1], {"@": "float", "value": "nan"}, {"@": "float", "value": "-inf"})
ARRAY_NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1e308, -1e308, 5e-324, 2.0**53, 1e15)
THREADS = ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")  # threads take address space
OF_USE = (  # about rows, parameters that can be set, what a model cannot do, and sums that have no estimate
    *(CostError, DomainError, InputError, NotAvailableError, PriorError, UnlearnError),
    *(EmptyClassError, NoModeError, SingularError),
    MergeError,  # names of rows that are of another type than those of the model
)
# its messages on other columns and labels, and on gaps where the file says that they are not accepted
OF_SCIKIT_LEARN = ("feature", "do not exist in the initial classes", "Input X contains NaN")
DOCUMENT = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa alpha prize"


MEMORY = Path("/dev/shm")  # files are written there if it exists: a disk takes longer than the library

STATE = "<qddq"  # number of the case, its start by the clock, its start in CPU time, whether cases have begun


class Seed(NamedTuple):
    """A model file, and rows to use its model with."""

    name: str
    data: bytes
    rows: Any
    labels: Any  # None for models without classes
    key: str | None = None


# -- seeds -----------------------------------------------------------------------------------------------------------
def seeds(folder: Path) -> list[Seed]:
    """Golden files written again, and a classifier of each case."""
    path, found = folder / "seed.deciban", []
    for golden in GOLDEN:
        asked = json.loads(golden.with_suffix(".json").read_text())
        asked |= {"input": INPUT[golden.stem]} if golden.stem in INPUT else {}
        key = asked.get("key", KEYS.get(golden.stem))
        model = load(golden, key=key)
        save(model, path)
        labels = asked.get("labels")
        if labels is None and hasattr(model, "classes_"):
            labels = [model.classes_[i % len(model.classes_)] for i in range(len(asked["rows"]))]
        found.append(Seed(golden.stem, path.read_bytes(), given(asked), labels, key))
    for case in CASES:
        rng = np.random.default_rng(5)
        rows = case.rows(rng, 24 + case.more)
        labels = np.array(["ham", "news", "spam"])[np.arange(rows.shape[0]) % 3]
        clf = GenerativeClassifier(case.family, ledger=case.name.startswith("categorical")).fit(rows, labels)
        for name, model in ((case.name, clf), (f"{case.name}-released", release(clf))):
            save(model, path)
            found.append(Seed(name, path.read_bytes(), rows[:5], labels[:5]))
    for name, estimator, rows in drop_ins():
        save(fit_drop_in(estimator, rows), path)
        found.append(Seed(name, path.read_bytes(), rows[:5], drop_in_labels(rows)[:5]))
    return found


def fit_drop_in(estimator: Any, rows: np.ndarray) -> Any:
    """Fit a drop-in, with labels if it is a classifier."""
    return estimator.fit(rows, drop_in_labels(rows)) if hasattr(estimator, "leave_one_out") else estimator.fit(rows)


def drop_in_labels(rows: np.ndarray) -> np.ndarray:
    """Return a label for each row."""
    return np.array(["ham", "news", "spam"])[np.arange(len(rows)) % 3]


def drop_ins() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield the drop-ins of `deciban.sklearn`: a name, an estimator, and rows."""
    rng = np.random.default_rng(6)
    values, counts = rng.normal(size=(24, 3)), rng.poisson(2.0, (24, 3))
    gaps = np.where(rng.random(values.shape) < 0.1, np.nan, values)
    colours = np.array(["red", "blue", "green"], dtype=object)[counts % 3]
    yield "gaussian-nb", drop_in.GaussianNB(), values
    yield "gaussian-nb-gaps", drop_in.GaussianNB(handle_missing="ignore"), gaps
    for cls in (drop_in.MultinomialNB, drop_in.ComplementNB, drop_in.BernoulliNB, drop_in.CategoricalNB):
        yield cls.__name__, cls(), counts
    yield "categorical-nb-names", drop_in.CategoricalNB(categories="auto", handle_unknown="ignore"), colours
    for solver in ("svd", "lsqr", "eigen"):
        yield f"linear-{solver}", drop_in.LinearDiscriminantAnalysis(solver=solver), values
    yield "quadratic", drop_in.QuadraticDiscriminantAnalysis(store_covariance=True), values
    yield "pca", drop_in.PCA(2), values
    for kind in ("full", "tied", "diag", "spherical"):
        yield f"mixture-{kind}", drop_in.GaussianMixture(2, covariance_type=kind, random_state=0), values
    yield "tfidf", drop_in.TfidfTransformer(), counts


# -- uses ------------------------------------------------------------------------------------------------------------
def uses(model: Any, seed: Seed, path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what people do with a model: a name, and the function that does it."""
    X, y = seed.rows, seed.labels
    yield "describe", lambda: describe(path)
    yield "repr", lambda: repr(model)
    if isinstance(model, GenerativeClassifier):
        yield "predict_proba", lambda: model.predict_proba(X)
        yield "explain", lambda: (repr(model.explain(X)), model.explain(X).to_frame())
        yield "leave_one_out", lambda: model.leave_one_out(X, y)
        yield "inspect", lambda: inspect(path)
        yield "decide", lambda: model.decide(X)
        if isinstance(X, list) and isinstance(X[0], str):
            yield "predict another text", lambda: model.predict([DOCUMENT])
        yield "learn", lambda: copy(model).learn(X, y).predict(X)
        yield "unlearn", lambda: copy(model).unlearn(X, y).predict(X)
        yield "merge", lambda: (model + model).predict(X)
        yield "save", lambda: model.save(path.with_name("again.deciban"))
        return
    for name in ("predict", "predict_proba", "transform", "log_density", "score_samples", "perplexity"):
        if hasattr(model, name) and not (name == "transform" and getattr(model, "solver", "") == "lsqr"):
            yield name, lambda name=name: getattr(model, name)(X)
    if isinstance(model, DropIn):
        for name in ("leave_one_out", "unlearn", "partial_fit"):
            if hasattr(model, name):
                rows = (X, y) if hasattr(model, "classes_") else (X,)
                yield name, lambda name=name, rows=rows: getattr(deepcopy(model), name)(*rows)
        if hasattr(model, "llr") and hasattr(model, "classes_"):
            yield "llr", lambda: model.llr(X, model.classes_[0])
        if hasattr(model, "__add__"):
            yield "merge", lambda: (model + model).predict(X) if hasattr(model, "predict") else model + model
        yield "save", lambda: save(model, path.with_name("again.deciban"))
        return
    if hasattr(model, "top_words"):
        yield "top_words", lambda: model.top_words(3)
    if hasattr(model, "posterior"):
        yield "posterior", lambda: repr(model.posterior(X) if hasattr(model, "top_words") else model.posterior())
    if hasattr(model, "learn"):
        yield "learn", lambda: model.learn(X) if y is None or not hasattr(model, "classes_") else model.learn(X, y)
    if hasattr(model, "unlearn"):
        yield (
            "unlearn",
            lambda: model.unlearn(X) if y is None or not hasattr(model, "classes_") else model.unlearn(X, y),
        )
    yield "save", lambda: save(model, path.with_name("again.deciban"))


def inspect(path: Path) -> None:
    """Run `deciban inspect` in this process."""
    from deciban.cli.inspect import inspect as command
    from deciban.cli.output import Terminal

    with redirect_stdout(io.StringIO()):
        command(Terminal(), str(path))


def outcome(path: Path, seed: Seed, may_load: bool, chance: random.Random | None = None) -> str:
    """Load a file and use the model, in all ways or in `SOME` that `chance` picks; return how it ended."""
    try:
        model = load(path, key=seed.key)
    except ModelFileError:
        return "refused"
    if not may_load:
        raise AssertionError("a damaged file was loaded")
    refused = 0
    every = list(uses(model, seed, path))
    for name, use in every if chance is None else chance.sample(every, min(SOME, len(every))):
        try:
            use()
        except (ModelFileError, *OF_USE):
            refused += 1
        except Exception as error:
            if isinstance(error, ValueError) and any(each in str(error) for each in OF_SCIKIT_LEARN):
                refused += 1
                continue
            error.add_note(f"use: {name}")
            raise
    return "loaded, some uses refused" if refused else "loaded, used"


# -- damage of bytes ---------------------------------------------------------------------------------------------------
def damage(data: bytes, others: list[Seed], chance: random.Random) -> bytes:
    """Return the bytes with one damage: bits, blocks, cuts, lengths, or parts of another file."""
    out, at = bytearray(data), chance.randrange(len(data))
    kind = chance.randrange(8)
    if kind == 0:
        out[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        out[at : at + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(9))
    elif kind == 2:
        del out[at:]
    elif kind == 3:
        out += chance.randbytes(chance.randrange(1, 100))
    elif kind == 4:
        other = chance.choice(others).data
        out[at:] = other[chance.randrange(len(other)) :]
    elif kind == 5:
        end = min(at + chance.randrange(1, 64), len(data))
        to = chance.randrange(len(data))
        out[to:to] = data[at:end]
    elif kind == 6:
        length = chance.choice([0, 1, 2**16, 2**24, 2**32, 2**63, len(data), chance.randrange(2**20)])
        out[:8] = length.to_bytes(8, "little")
    else:
        for _ in range(chance.randrange(2, 20)):
            out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


# -- changes of the content, signed again ------------------------------------------------------------------------------
def taken_apart(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON of a file, which may be changed, and its arrays, which may not."""
    text, arrays = parts_of(data)
    return json.loads(text), dict(arrays)


@cache
def parts_of(data: bytes) -> tuple[str, dict[str, np.ndarray]]:
    """Return the JSON of a file as text, and its arrays."""
    length = int.from_bytes(data[:8], "little")
    names, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    model = names.pop("__metadata__")["model"]
    arrays: dict[str, np.ndarray] = {}
    for name, entry in names.items():
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(body[begin:end], container.DTYPES[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"])
    return model, arrays


@cache
def donor_of(data: bytes) -> dict[str, Any]:
    """Return the JSON of a file, of which parts are copied."""
    return json.loads(parts_of(data)[0])


def put_together(model: dict[str, Any], arrays: dict[str, np.ndarray], entries: random.Random | None = None) -> bytes:
    """Return a file with valid digests; with `entries`, one of the positions, types or shapes of arrays is changed."""
    body = b"".join(map(bytes, container.chunks(arrays)))
    text = json.dumps(model, separators=(",", ":"))
    whole = container.header(text, arrays, blake2b(body, digest_size=32).hexdigest())
    if entries is not None:
        names = json.loads(whole[8:])
        meta = names.pop("__metadata__")
        twist(names, entries, [names])
        header = json.dumps({"__metadata__": meta, **names}, separators=(",", ":")).encode()
        whole = len(header).to_bytes(8, "little") + container._signed(header)
    return whole + body


def forge(seed: Seed, others: list[Seed], chance: random.Random) -> bytes:
    """Return the file with one to three changes of its content."""
    model, arrays = taken_apart(seed.data)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        kind = chance.randrange(8)
        if kind <= 3:
            donor = model if chance.random() < 0.7 else donor_of(chance.choice(others).data)
            twist(model["model"], chance, [model["model"], donor["model"]])
        elif kind == 4:
            twist(model, chance, [model])
        elif kind == 5 and arrays:
            return put_together(model, arrays, chance)
        elif arrays:
            name = chance.choice(sorted(arrays))
            arrays[name] = bent(arrays[name], arrays, chance)
    return put_together(model, arrays)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return each place of a JSON tree: the list or object, and the index or key."""
    found, stack = [], [tree]
    while stack:
        node = stack.pop()
        if len(found) > MOST_PLACES:  # parts that hold each other: no file can be made of them
            raise ValueError("the tree does not end")
        for key, part in list(node.items() if isinstance(node, dict) else enumerate(node)):
            found.append((node, key))
            if isinstance(part, dict | list):
                stack.append(part)
    return found


def twist(tree: Any, chance: random.Random, donors: list[Any]) -> None:
    """Change one place of a JSON tree."""
    every = places(tree)
    if not every:
        return
    node, key = chance.choice(every)
    held = node[key]
    copied = lambda: deepcopy((lambda n, k: n[k])(*chance.choice(places(chance.choice(donors)))))  # noqa: E731
    kind = chance.randrange(8)
    if kind == 0:
        node[key] = chance.choice(chance.choice((NUMBERS, TEXTS, PLAIN)))
    elif kind == 1 and type(held) in (int, float):
        node[key] = chance.choice((held + 1, held - 1, -held, held * 2, float(held), str(held), *NUMBERS))
    elif kind == 1 and isinstance(held, list) and held:
        at = chance.randrange(len(held))
        chance.choice(
            (lambda: held.pop(at), lambda: held.append(held[at]), held.reverse, lambda: held.insert(0, None))
        )()
    elif kind == 1 and isinstance(held, str):
        node[key] = chance.choice((held.upper(), held[:-1], held + "x", *TEXTS))
    elif kind == 2:
        node[key] = copied()
    elif kind == 3 and isinstance(node, dict):
        del node[key]
    elif kind == 4:
        other, place = chance.choice(every)
        node[key], other[place] = deepcopy(other[place]), deepcopy(held)
    elif kind == 5:
        node[key] = {"@": "range", "size": chance.choice((0, 1, 2, 3, 5, 24, 100, 2**20, 2**32, 2**40))}
    elif kind == 6:
        node[key] = {"@": "scalar", "dtype": chance.choice(list(container.DTYPES)), "value": chance.choice(NUMBERS)}
    elif kind == 7:
        node[key] = {"@": chance.choice(("tuple", "dict", "names", "same")), "items": [], "as": "family_"}


def bent(array: np.ndarray, arrays: dict[str, np.ndarray], chance: random.Random) -> np.ndarray:
    """Return an array with other numbers, another type, another shape, or another order."""
    kind = chance.randrange(9)
    if kind <= 3 and array.size:
        flat = array.reshape(-1).copy()
        at = chance.randrange(flat.size)
        every = chance.random() < 0.2
        with np.errstate(all="ignore"), suppress(OverflowError, ValueError):
            value = np.array(chance.choice(ARRAY_NUMBERS)).astype(flat.dtype)
            flat[slice(None) if every else at] = value if chance.random() < 0.8 else -flat[at]
        return flat.reshape(array.shape)
    if kind == 4:
        with np.errstate(all="ignore"):
            return array.astype(container.DTYPES[chance.choice(list(container.DTYPES))])
    if kind == 5:
        sizes = list(array.shape)
        chance.choice((sizes.reverse, lambda: sizes.append(1), sizes.sort, lambda: sizes.insert(0, 1)))()
        return array.reshape(sizes) if chance.random() < 0.8 else array.reshape(-1)
    if kind == 6 and array.ndim:
        axis = chance.randrange(array.ndim)
        if not array.shape[axis]:
            return array
        less = chance.random() < 0.5
        return (
            np.delete(array, -1, axis)
            if less
            else np.concatenate([array, np.take(array, [-1], axis, mode="clip")], axis)
        )
    if kind == 7 and array.ndim:
        return np.ascontiguousarray(array[::-1])
    other = arrays[chance.choice(sorted(arrays))]
    return other.copy() if prod(other.shape) else array


# -- one case, many cases ----------------------------------------------------------------------------------------------
def made(case: int, number: int, every: list[Seed]) -> tuple[Seed, bytes, bool]:
    """Return the seed of a case, the changed bytes, and whether they may load."""
    chance = random.Random(f"{case} {number}")
    seed = chance.choice(every)
    if chance.random() < 0.5:
        changed = damage(seed.data, every, chance)
        return seed, changed, any(changed == other.data for other in every)
    return seed, forge(seed, every, chance), True


def address_space() -> int:
    """Return the bytes of address space in use."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def cpu_time(process: int) -> float:
    """Return the CPU time of a process in seconds; 0 if it has ended."""
    with suppress(OSError):
        used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def child(folder: Path, seed: int, first: int, step: int) -> None:
    """Run cases first, first + step, … until killed; counts and faults are written to files in the folder."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    every: list[Seed] = pickle.loads((folder / "seeds").read_bytes())
    path, own = folder / f"changed-{first % step}.deciban", f"{first % step}"
    import llvmlite.binding  # noqa: F401  # a kernel that no seed needs may be compiled under the limit

    for each in every:  # imports, compilers and caches take their memory before it is limited
        path.write_bytes(each.data)
        try:
            load(path, key=each.key)  # a seed that is refused would hide what its changes do
            outcome(path, each, True)
        except Exception as error:
            raise AssertionError(f"the seed {each.name} itself fails: {error!r}") from error
    gc.freeze()  # what is imported stays: collections need not look at it again
    used, hard = address_space(), resource.getrlimit(resource.RLIMIT_AS)[1]
    with open(folder / f"state-{own}", "r+b") as file:
        state = mmap.mmap(file.fileno(), 32)
        ends: Counter[str] = Counter()
        number = first
        while True:
            struct.pack_into(STATE, state, 0, number, time.time(), time.process_time(), 1)
            try:
                origin, changed, may_load = made(seed, number, every)
            except (RecursionError, ValueError, TypeError, KeyError):  # a tree that JSON cannot hold
                ends["not made"] += 1
                number += step
                continue
            path.write_bytes(changed)
            resource.setrlimit(resource.RLIMIT_AS, (used + ROOM + 10 * len(changed), hard))
            try:
                ends[outcome(path, origin, may_load, random.Random(number))] += 1
            except BaseException as error:
                resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
                ends["FAULT"] += 1
                with open(folder / f"faults-{own}", "a") as faults:
                    faults.write(json.dumps([number, called(error), origin.name]) + "\n")
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            number += step
            if number // step % 64 == 0:
                (folder / f"ends-{own}.new").write_text(json.dumps(ends))
                os.replace(folder / f"ends-{own}.new", folder / f"ends-{own}-{first}")


def called(error: BaseException) -> str:
    """Describe an error by its class, its place in deciban, and the use."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "deciban" in frame.filename and "fuzz" not in frame.filename] or frames
    use = " ".join(getattr(error, "__notes__", []))
    return f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno} {use}: {str(error)[:100]}"


def run(seconds: float, seed: int, times: int | None = None, processes: int = 1) -> tuple[Counter[str], list[Any]]:
    """Run cases for some seconds, or a number of them; return how they ended, and the faults."""
    within = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="deciban-fuzz-", dir=within) as name:
        folder = Path(name)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            (folder / "seeds").write_bytes(pickle.dumps(seeds(folder)))
        watched = [Watched(folder, seed, first, processes) for first in range(processes)]
        started = None
        while True:
            time.sleep(0.1)
            alive = [each.look() for each in watched]
            for each in watched:
                each.show_faults()
            if started is None and all(alive):
                started = time.monotonic()
            done = sum(each.done for each in watched)
            if started is not None and (time.monotonic() - started > seconds or (times is not None and done >= times)):
                break
        for each in watched:
            each.stop()
        faults = [fault for each in watched for fault in each.faults()]
        ends = sum((each.ends() for each in watched), Counter())
        ends["cases"] = sum(each.done for each in watched)
        return ends, faults


class Watched:
    """A process that runs cases; it is started again after a crash or a case that takes too long."""

    def __init__(self, folder: Path, seed: int, first: int, step: int) -> None:
        self.folder, self.seed, self.first, self.step = folder, seed, first, step
        self.more: list[Any] = []  # crashes and hangs
        self.shown: set[int] = set()  # cases whose faults were printed
        self.next = first
        self.start()

    def start(self) -> None:
        """Start the process at the next case."""
        arguments = ["--child", str(self.folder), "--seed", str(self.seed), "--case", str(self.next)]
        (self.folder / f"state-{self.first}").write_bytes(struct.pack(STATE, self.next, 0.0, 0.0, 0))
        self.process = subprocess.Popen(
            [sys.executable, __file__, *arguments, "--processes", str(self.step)],
            stderr=subprocess.PIPE,
            env={**os.environ, **dict.fromkeys(THREADS, "1")},
        )

    def state(self) -> tuple[int, float, float, int]:
        """Return number and start of the present case, by the clock and in CPU time, and whether cases have begun."""
        return struct.unpack(STATE, (self.folder / f"state-{self.first}").read_bytes())

    @property
    def done(self) -> int:
        """Number of cases before the present one."""
        return self.state()[0] // self.step

    def look(self) -> bool:
        """Return whether cases run; restart the process if it crashed or hangs."""
        number, since, used, begun = self.state()
        if self.process.poll() is not None:
            why = self.process.stderr.read().decode()[-2000:]
            if not begun:
                raise SystemExit(why)
            self.more.append([number, f"CRASH: exit {self.process.returncode} {why[-300:]}", ""])
        elif begun and (cpu_time(self.process.pid) - used > LIMIT or time.time() - since > WAIT):
            self.stop()
            self.more.append([number, f"HANG: more than {LIMIT:g} s", ""])
        else:
            return bool(begun)
        self.next = number + self.step
        self.start()
        return False

    def stop(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def show_faults(self) -> None:
        """Print the faults that were not printed before."""
        for number, what, name in self.faults():
            if number not in self.shown:
                print(f"case {number}, {name}: {what}", flush=True)
                self.shown.add(number)

    def faults(self) -> list[Any]:
        """Return the faults: number of the case, description, name of the seed."""
        path = self.folder / f"faults-{self.first}"
        written = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [*written, *self.more]

    def ends(self) -> Counter[str]:
        """Return how cases ended; the last cases, fewer than 64, are not counted."""
        found: Counter[str] = Counter()
        for path in self.folder.glob(f"ends-{self.first}-*"):
            found += Counter(json.loads(path.read_text()))
        return found


def again(seed: int, number: int) -> None:
    """Run one case in this process, without limits; its error is raised."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="deciban-fuzz-") as folder:
        path = Path(folder) / "changed.deciban"
        with np.errstate(all="ignore"):
            origin, changed, may_load = made(seed, number, seeds(Path(folder)))
            path.write_bytes(changed)
            before, after = taken_apart(origin.data), ({}, {})
            with suppress(ValueError, KeyError, TypeError, UnicodeDecodeError):
                after = taken_apart(changed)
            print(f"seed {origin.name}; changes:")
            for line in differences(before[0], after[0]):
                print(f"  {line}")
            for name in sorted({*before[1], *after[1]}):
                old, new = before[1].get(name), after[1].get(name)
                same = old is not None and new is not None and old.dtype == new.dtype
                if not (same and np.array_equal(old, new, equal_nan=True)):
                    print(f"  array {name}: {old!r} → {new!r}")
            print(outcome(path, origin, may_load, random.Random(number)))


def differences(a: Any, b: Any, at: str = "") -> Iterator[str]:
    """Yield the places at which two JSON values differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            yield from differences(a.get(key), b.get(key), f"{at}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (old, new) in enumerate(zip(a, b)):
            yield from differences(old, new, f"{at}[{i}]")
    elif a != b or type(a) is not type(b):
        yield f"{at}: {str(a)[:200]} → {str(b)[:200]}"


def main() -> None:
    """Parse the arguments, run, and report; the exit code is 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--times", type=int, default=None, help="stop after this many cases")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--case", type=int, default=None, help="run this case only")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)
    if given.child is not None:
        child(Path(given.child), seed, given.case, given.processes)
    if given.case is not None:
        again(seed, given.case)
        return
    print(f"seed {seed}", flush=True)
    ends, faults = run(given.seconds, seed, given.times, given.processes)
    print(json.dumps(dict(ends)))
    found: dict[str, list[int]] = {}
    for number, what, _ in faults:
        found.setdefault(what.partition(": ")[0] if "at " in what else what, []).append(number)
    for numbers in sorted(found.values(), key=len, reverse=True):
        example = next(text for number, text, _ in faults if number == numbers[0])
        print(f"{len(numbers)} × {example}\n    repeat: python tests/store/fuzz.py --seed {seed} --case {numbers[0]}")
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
