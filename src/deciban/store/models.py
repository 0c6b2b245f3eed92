"""Saving and loading: the same few lines for every model.

What is stored is a dataclass. A model that is one is stored as it is; another gives one by `stored()`, which gives the
model back by `restored(check)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from json import dumps
from typing import Any

import numpy as np

from deciban import __version__
from deciban.errors import DecibanError, ModelFileError, NotAvailableError
from deciban.families.protocol import Rule
from deciban.families.released import is_released, strip
from deciban.store import checks
from deciban.store.codec import Decoder, Encoder, as_record
from deciban.store.container import HEX, Container, chunks, damaged, header, open_container, parse_json
from deciban.store.files import write_all, write_whole

SMALL = 2**24  # bytes of arrays up to which everything is checked at once: some twenty milliseconds
ODD = (AttributeError, TypeError, ValueError, IndexError, KeyError, ArithmeticError)  # what parts of two models raise
KEYS = {"kind", "released", "rows", "deciban", "numpy", "note", "model"}


def save(model: Any, path: str | os.PathLike[str], *, note: str = "") -> None:
    """Write a model to a file, whole or not at all; the same model gives the same bytes.

    >>> import tempfile
    >>> from deciban import Bernoulli
    >>> coin = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    >>> path = os.path.join(tempfile.mkdtemp(), "coin.deciban")
    >>> save(coin, path)
    >>> load(path).learn([1, 1]).posterior()["p"]
    Marginal(mean 0.6429, sd 0.1237)
    """
    record = as_record(model)
    if not is_dataclass(record) or isinstance(record, type):
        raise ModelFileError(f"{type(model).__name__} is not a model that can be saved. Save a fitted one of deciban.")
    if getattr(record, "fitted", None) == {}:
        raise ModelFileError(f"this {type(model).__name__} is not fitted. Fit it, then save it.")
    encoder = Encoder()
    described = {
        "kind": type(model).__name__,
        "released": is_released(getattr(record, "family", None)),
        "rows": getattr(record, "rows", None),
        "deciban": __version__,
        "numpy": np.__version__,
        "note": str(note),
        "model": encoder.encode(record, ""),
    }
    text = dumps(described, separators=(",", ":"), allow_nan=False)

    def fill(descriptor: int) -> None:
        """The arrays first, behind room for the header, which holds their digest."""
        digest = blake2b(digest_size=HEX // 2)
        os.lseek(descriptor, len(header(text, encoder.arrays)), os.SEEK_SET)
        for chunk in chunks(encoder.arrays):
            digest.update(chunk)
            write_all(descriptor, chunk)
        os.lseek(descriptor, 0, os.SEEK_SET)
        write_all(descriptor, header(text, encoder.arrays, digest.hexdigest()))

    header(text, encoder.arrays)  # refuses what is too large before anything is written
    write_whole(path, fill)


def load(path: str | os.PathLike[str], *, verify: bool | None = None, key: Any = None) -> Any:
    """The model in a file; no code in it is ever run.

    Header, shapes, sizes and names are always checked. Numbers and their digest are checked at once in small files
    (up to 16 MiB); in larger ones when a classifier first needs its sums, and not at all in a released model, whose
    arrays stay on the disk until a row needs them. `verify=True` checks everything now, `verify=False` no numbers.

    `key` is the key of the model's ledger, if it has one of its own.
    """
    container = open_container(path)
    described = _described(container)
    decoder = Decoder(container)
    record = decoder.whole(described["model"], "")
    if not is_dataclass(record):
        raise damaged(container.path, "it holds no model")
    check: Callable[[], None] | None = Check(container, record)
    now = verify or (verify is None and container.size <= SMALL)
    later = verify is None and not now and not described["released"]
    restore = getattr(record, "restored", None)
    if now or (later and restore is None):
        check()  # type: ignore[misc]
    if restore is None:
        return record
    try:
        return restore(check if later and not now else None, key)
    except DecibanError as error:
        raise error.turned_into(ModelFileError).at(container.path) from None
    except ODD as error:
        raise damaged(container.path, f"its parts do not belong together ({error})") from None


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file says of itself, without reading its arrays: kind, rows learnt, versions, note, size."""
    container = open_container(path)
    described = _described(container)
    return {name: described[name] for name in described if name != "model"} | {
        "arrays": len(container.entries),
        "bytes": container.start + container.size,
    }


class Check:
    """The numbers of a file, to be checked once."""

    def __init__(self, container: Container, record: Any) -> None:
        self.container, self.record = container, record

    def __call__(self) -> None:
        self.container.verify()
        try:
            checks.values(self.record)
        except ModelFileError as error:
            raise error.at(self.container.path) from None


def _described(container: Container) -> dict[str, Any]:
    try:
        described = parse_json(container.model)
    except (ValueError, RecursionError) as error:
        raise damaged(container.path, f"the model is not JSON ({error})") from None
    if not isinstance(described, dict) or set(described) != KEYS:
        raise damaged(container.path, f"the model does not have the keys {', '.join(sorted(KEYS))}")
    return described


def release(model: Any, rule: Rule | None = None) -> Any:
    """Return the same model without its sums: smaller, quick to open, and unable to learn or unlearn.

    Parameters
    ----------
    model : GenerativeClassifier or Fitted
        A fitted model.
    rule : {"ml", "map", "mean", "predictive"}, optional
        The rule under which it answers. The default is a classifier's own rule, and "mean" for a family that was
        fitted without classes.

    Returns
    -------
    GenerativeClassifier or Fitted
        The released model; it answers as before, to the bit.

    Examples
    --------
    >>> from deciban import Bernoulli
    >>> coin = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    >>> release(coin).log_density([[1]]).round(4), coin.log_density([[1]]).round(4)
    (array([-0.539]), array([-0.539]))
    """
    if hasattr(model, "released"):
        if rule is not None and rule != model.rule:
            model = model.reestimate(rule=rule)
        return model.released()
    if not is_dataclass(model) or not {"family", "stats"} <= {f.name for f in fields(model)}:
        raise NotAvailableError(
            f"{type(model).__name__} cannot be released. Save it whole; or save its density(), which is all that "
            "scoring needs."
        )
    held: Any = model
    chosen = rule or "mean"
    family, stats = strip(held.family, held.stats, held.family.estimate(held.stats, chosen), chosen)
    return replace(held, family=family, stats=stats)
