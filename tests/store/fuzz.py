"""Damages model files in many ways and loads them: `python tests/store/fuzz.py 100000`.

A file that was only damaged must be refused: its digests differ. A file that was changed and signed again must be
refused with an error of deciban's, or be a model that answers, or says why not. Nothing may crash, run out of a memory
limit, or raise anything else.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from hashlib import blake2b
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from deciban import Categorical, Gaussian, GenerativeClassifier, Mixture, Poisson, load, release, save
from deciban.errors import DecibanError
from deciban.store import container
from store.models import COUNTS, FAMILIES, NUMBERS, fitted, some, y

ROOM = 2**29  # bytes of memory beyond what loading the seeds took
ODD = (0, 1, -1, 2, 2**31, 2**40, 2**63, 10**30, 0.5, -1.5, 1e300, True, None, "", "F64", "class", [], {}, "\udcff")


def seeds(folder: Path) -> list[tuple[bytes, object]]:
    """Small files of every kind, each with rows to ask about."""
    made: list[tuple[object, object]] = []
    for name in FAMILIES:
        clf, X = fitted(name)
        made += [(clf, some(X, slice(4))), (release(clf), some(X, slice(4)))]
    made.append((GenerativeClassifier(Categorical(), ledger=True).fit(COUNTS, y), COUNTS[:4]))
    made.append((GenerativeClassifier(Gaussian("tied"), rule="predictive").fit(NUMBERS, y), NUMBERS[:4]))
    known = {"m": Gaussian.of([1.0, 2.0], [[2.0, 1.0], [1.0, 3.0]]), "f": Gaussian.of([0.0, 1.0], [1.0, 2.0])}
    made.append((GenerativeClassifier.from_densities(known), NUMBERS[:4, :2]))
    made.append((Mixture(Poisson(), 2).fit(COUNTS, random_state=0), COUNTS[:4]))
    made.append((Poisson().fit(COUNTS), COUNTS[:4]))
    files = []
    for model, rows in made:
        save(model, folder / "seed.deciban")
        files.append(((folder / "seed.deciban").read_bytes(), rows))
        ask(load(folder / "seed.deciban"), rows)
    return files


def ask(model: object, rows: object) -> None:
    """Use a model as people do."""
    if hasattr(model, "predict_proba"):
        model.predict_proba(rows)
    else:
        model.log_density(rows)


# -- damage ----------------------------------------------------------------------------------------------------------
def damage(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """The same bytes, or not quite."""
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
        other = chance.choice(others)
        out[at:] = other[chance.randrange(len(other)) :]
    elif kind == 5:
        end = min(at + chance.randrange(1, 64), len(data))
        to = chance.randrange(len(data))
        out[to:to] = data[at:end]
    elif kind == 6:
        out[:8] = chance.choice([0, 1, 2**16, 2**24, 2**32, 2**63, len(data), chance.randrange(2**20)]).to_bytes(
            8, "little"
        )
    else:
        for _ in range(chance.randrange(2, 20)):
            out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


def forge(data: bytes, chance: random.Random) -> bytes:
    """Change the header or the arrays, and sign again."""
    length = int.from_bytes(data[:8], "little")
    names, body = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    model = json.loads(names["__metadata__"]["model"])
    kind = chance.randrange(4)
    if kind == 0:
        twist(model, chance)
    elif kind == 1:
        twist({name: entry for name, entry in names.items() if name != "__metadata__"}, chance)
    elif kind == 2 and body:
        at = 8 * chance.randrange(len(body) // 8 or 1)
        value = chance.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, -1e308, 5e-324])
        body[at : at + 8] = np.float64(value).tobytes()
    elif body:
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    text = json.dumps(model, separators=(",", ":"))
    meta = {"deciban": "1", "header": "0" * 64, "data": blake2b(body, digest_size=32).hexdigest(), "model": text}
    header = json.dumps({**names, "__metadata__": meta} | {}, separators=(",", ":")).encode()
    header += b" " * (-(8 + len(header)) % 64)
    return len(header).to_bytes(8, "little") + container._signed(header) + bytes(body)


def twist(tree: object, chance: random.Random) -> None:
    """Change one place of a JSON tree."""
    places = []
    stack = [tree]
    while stack:
        node = stack.pop()
        for key, part in list(node.items() if isinstance(node, dict) else enumerate(node)):
            places.append((node, key))
            if isinstance(part, dict | list):
                stack.append(part)
    node, key = chance.choice(places)
    kind = chance.randrange(5)
    if kind == 0:
        node[key] = chance.choice(ODD)
    elif kind == 1 and isinstance(node[key], int | float):
        node[key] += chance.choice([-1, 1, 7])
    elif kind == 2:
        other, place = chance.choice(places)
        node[key] = other[place]
    elif kind == 3 and isinstance(node, dict):
        del node[key]
    elif kind == 4:
        other, place = chance.choice(places)
        node[key], other[place] = other[place], node[key]


def outcome(path: Path, rows: object, may_load: bool) -> str:
    """How one file ends."""
    try:
        model = load(path)
    except DecibanError:
        return "refused"
    if not may_load:
        raise AssertionError("a damaged file was loaded")
    try:
        ask(model, rows)
    except DecibanError:
        return "loaded, said why it cannot answer"
    except ValueError as error:
        if "features" in str(error) or "feature names" in str(error):  # as scikit-learn says it
            return "loaded, said why it cannot answer"
        raise
    return "loaded, answered"


def run(times: int, seed: int = 0) -> Counter:
    """How the files ended; raises where some did as none may."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    chance, ends, wrong = random.Random(seed), Counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        files, path = seeds(Path(folder)), Path(folder) / "damaged.deciban"
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
        every = [data for data, _ in files]
        for turn in range(times):
            data, rows = chance.choice(files)
            forged = turn % 2 == 1
            try:
                changed = forge(data, chance) if forged else damage(data, every, chance)
            except (RecursionError, ValueError, TypeError):  # a tree that holds itself cannot be written
                ends["not made"] += 1
                continue
            path.write_bytes(changed)
            try:
                ends[outcome(path, rows, forged or changed in every)] += 1
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                called = f"{type(error).__name__} {str(error)[:100]} ({Path(last.filename).name}:{last.lineno})"
                ends["WRONG"] += 1
                if called not in wrong:
                    wrong[called] = f"{tempfile.gettempdir()}/fuzz-{seed}-{turn}.deciban"
                    Path(wrong[called]).write_bytes(changed)  # to look at
    if wrong:
        raise AssertionError("\n".join(f"{path}: {what}" for what, path in wrong.items()) + f"\n{dict(ends)}")
    return ends


if __name__ == "__main__":
    print(dict(run(*map(int, sys.argv[1:]))))
