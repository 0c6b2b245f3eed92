"""Saving, loading, describing and releasing models.

A file holds one dataclass, the record of the model. A model that is a dataclass is its own record. Other models return
their record by the method `stored()`, and the record returns the model by its method `restored(check, key)`.
"""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass, replace
from functools import partial
from hashlib import blake2b
from json import dumps
from typing import Any

import numpy as np

from deciban import __version__
from deciban.errors import DecibanError, ModelFileError, NotAvailableError
from deciban.families.fixed import is_released, strip
from deciban.families.protocol import Rule
from deciban.model.ledger import Secret
from deciban.store import checks
from deciban.store.codec import Decoder, Encoder, as_record
from deciban.store.container import HEX, Container, chunks, damaged, header, open_container, parse_json
from deciban.store.files import write_all, write_whole

SMALL = 2**24  # bytes of arrays up to which all numbers are checked when a file is loaded: about 20 ms
TRIED = 2**20  # bytes of arrays up to which a model is used once when it is loaded: a few milliseconds
KEYS = {"kind", "released", "rows", "deciban", "numpy", "note", "model"}


def save(model: object, path: str | os.PathLike[str], *, note: str = "") -> None:
    """Write a model to a file.

    The file is written atomically: it is complete, or the old file stays unchanged. Equal models give equal bytes.

    Parameters
    ----------
    model : estimator, Fitted or Density
        A fitted model.
    path : str or path-like
        The file; it is replaced if it exists.
    note : str, default=""
        Text that `describe` returns.

    Raises
    ------
    ModelFileError
        If the model is not fitted, or holds values that a file cannot hold.
    SaveError
        If the file cannot be written.

    Examples
    --------
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
        raise ModelFileError(
            f"{type(model).__name__} is not a model that can be saved. Save a fitted model of deciban."
        )
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
    try:
        text = dumps(described, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise ModelFileError("the weights of the rows learnt are so large that their sum overflows.") from None

    def fill(descriptor: int) -> None:
        """Write the arrays, then the header before them, which holds their digest."""
        digest = blake2b(digest_size=HEX // 2)
        os.lseek(descriptor, len(header(text, encoder.arrays)), os.SEEK_SET)
        for chunk in chunks(encoder.arrays):
            digest.update(chunk)
            write_all(descriptor, chunk)
        os.lseek(descriptor, 0, os.SEEK_SET)
        write_all(descriptor, header(text, encoder.arrays, digest.hexdigest()))

    header(text, encoder.arrays)  # raises if it is too large, before anything is written
    write_whole(path, fill)


def load(
    path: str | os.PathLike[str],
    *,
    verify: bool | None = None,
    key: Secret = None,
    mmap: bool = False,
    trust_pattern: bool = False,
) -> Any:
    """Read a model from a file; no code from the file is run.

    Header, shapes, sizes and names are always checked. By default numbers and their digest are checked at once in files
    of up to 16 MiB. In larger files they are checked when a classifier is first used; those of a large released model
    are checked by ``verify=True`` only. A model of up to 1 MiB is used once, with made-up rows, so that parts that do
    not belong together are noticed here and not later.

    Parameters
    ----------
    path : str or path-like
        A file that `save` has written.
    verify : bool, optional
        True checks all numbers now, False checks none and leaves out the trial.
    key : str or bytes, optional
        Key of the model's ledger, if it was fitted with one.
    mmap : bool, default=False
        Map the arrays into memory instead of reading them: several processes share one copy, and a large file loads at
        once. The file must not be changed in place while the model exists: other bytes change its answers, and a
        truncated file ends the process (SIGBUS). Files that are replaced, as `save` does, are safe.
    trust_pattern : bool, default=False
        Accept a pattern of words (``Text(pattern=…)``) for which `re` may take more than linear time. Such a pattern
        can make a short text take hours, so that by default the file is refused.

    Returns
    -------
    estimator, Fitted or Density
        The model; it gives the same answers as the model that was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or was written by a newer version; or if its content contradicts
        itself, which may only be noticed when the model is first used.

    Examples
    --------
    >>> import tempfile
    >>> from deciban import Bernoulli, load, save
    >>> path = os.path.join(tempfile.mkdtemp(), "coin.deciban")
    >>> save(Bernoulli().fit([1, 1, 0, 1]), path)
    >>> load(path).posterior()["p"]
    Marginal(mean 0.6667, sd 0.1782)
    """
    container = open_container(path, "map" if mmap else "read")
    described = _described(container)
    decoder = Decoder(container, trust_pattern)
    record = decoder.whole(described["model"], "")
    if not is_dataclass(record):
        raise damaged(container.path, "it holds no model")
    check = partial(_check, container, record)
    now = verify or (verify is None and container.size <= SMALL)
    later = verify is None and not now and not described["released"]
    restore = getattr(record, "restored", None)
    if now or (later and restore is None):
        check()
    try:
        if restore is None:
            checks.check_estimate(record)
        model = record if restore is None else restore(check if later else None, key)
        if verify is not False and container.size <= TRIED:
            from deciban.store.trial import tried  # imports what learns and explains

            tried(model)
        return model
    except DecibanError as error:
        raise error.turned_into(ModelFileError).at(container.path) from error.__cause__
    except checks.MISMATCH as error:
        raise damaged(container.path, f"the parts of the model do not belong together ({error})") from None


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe the model in a file without reading its arrays.

    Parameters
    ----------
    path : str or path-like
        A file that `save` has written.

    Returns
    -------
    dict
        Class of the model (kind), whether it is released, rows learnt (None if it has no such number), versions of
        deciban and numpy that wrote it, note, number of arrays, and size in bytes.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or was written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from deciban import Bernoulli, describe, save
    >>> path = os.path.join(tempfile.mkdtemp(), "coin.deciban")
    >>> save(Bernoulli().fit([1, 1, 0, 1]), path, note="four throws")
    >>> about = describe(path)
    >>> about["kind"], about["note"]
    ('Fitted', 'four throws')
    """
    container = open_container(path, "none")
    described = _described(container)
    return {name: described[name] for name in described if name != "model"} | {
        "arrays": len(container.entries),
        "bytes": container.start + container.size,
    }


def _check(container: Container, record: object) -> None:
    """Check the digest and the numbers of a file."""
    container.verify()
    try:
        checks.values(record)
    except DecibanError as error:
        raise error.turned_into(ModelFileError).at(container.path) from None
    except checks.MISMATCH as error:
        raise damaged(container.path, f"the parts of the model do not belong together ({error})") from None


def _described(container: Container) -> dict[str, Any]:
    """Return the description in the header, with the model as JSON."""
    try:
        described = parse_json(container.model)
    except (ValueError, RecursionError) as error:
        raise damaged(container.path, f"the model is not JSON ({error})") from None
    if not isinstance(described, dict) or set(described) != KEYS:
        raise damaged(container.path, f"the model does not have the keys {', '.join(sorted(KEYS))}")
    rows = described["rows"]
    if not all(isinstance(described[name], str) for name in ("kind", "deciban", "numpy", "note")):
        raise damaged(container.path, "the kind, the versions and the note are not text")
    if type(described["released"]) is not bool or not (rows is None or type(rows) in (int, float)):
        raise damaged(container.path, "it is not said how many rows were learnt, or whether it is released")
    return described


def release(model: Any, rule: Rule | None = None) -> Any:
    """Return the model without its sums: smaller and faster to load; it cannot learn or unlearn.

    Parameters
    ----------
    model : GenerativeClassifier or Fitted
        A fitted model.
    rule : {"ml", "map", "mean", "predictive"}, optional
        How its parameters are estimated. The default is the rule of a classifier, and "mean" for a family that was
        fitted without classes.

    Returns
    -------
    GenerativeClassifier or Fitted
        The released model; its answers are equal to the bit.

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
            f"{type(model).__name__} cannot be released. Save the model, or save its density(), which is enough for "
            "scoring."
        )
    held: Any = model
    chosen = rule or "mean"
    family, stats = strip(held.family, held.stats, held.family.estimate(held.stats, chosen), chosen)
    return replace(held, family=family, stats=stats)
