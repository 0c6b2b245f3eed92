"""Receipts of unlearning: what was removed, and digests by which it can be checked later.

rows            keyed BLAKE2b-128 of each row with its label, as in the ledger; the row cannot be computed from it
sums            BLAKE2b-256 of the statistics before and after (`digests.py`)
calibration     BLAKE2b-256 of the calibration, which is not changed by unlearning until it is fitted again
seal            keyed BLAKE2b-256 of all other fields of the receipt
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from hmac import compare_digest
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np

from deciban.errors import InputError, ModelFileError
from deciban.model.ledger import Key, row_hashes
from deciban.model.model import Model
from deciban.read.batches import Batch
from deciban.read.codes import encode_labels
from deciban.read.tables import Table
from deciban.service.digests import former_sums_digest, sums_digest, without_peaks
from deciban.statistics import Stats
from deciban.store.codec import Encoder

FORM = "deciban receipt 2"
FORMER = "deciban receipt 1"  # whose digests of sums are those of `former_sums_digest`


def row_digests(table: Table, columns: Sequence[Any], labels: Sequence[Any], key: Key) -> list[str]:
    """Return the keyed digest of each row with its label, 32 hexadecimal digits each."""
    names, codes = encode_labels(list(labels), len(table))
    return [bytes(each).ljust(16, b"\0").hex() for each in row_hashes(table, columns, names, codes, None, key).tolist()]


@dataclass(frozen=True)
class Receipt:
    """What an unlearning removed."""

    lesson: int
    kind: str  # unlearn, correct or erase
    time: str  # ISO 8601, UTC
    rows: tuple[str, ...]  # keyed digests
    key: str  # id of the key
    sums_before: str
    sums_after: str
    calibration: str | None
    undoes: int | None = None
    purged: tuple[int, ...] | None = None  # lessons from which an erasure removed the row
    form: str = FORM
    seal: str = ""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Receipt:
        """Read a receipt from JSON."""
        names = set(cls.__dataclass_fields__)
        if not isinstance(content, Mapping) or content.get("form") not in (FORM, FORMER) or set(content) != names:
            raise InputError("this is not a receipt of deciban.", remedy="Give the JSON that the service returned.")
        rows, purged = content["rows"], content["purged"]
        if not isinstance(rows, list | tuple) or not isinstance(purged, list | tuple | None):
            raise InputError("this receipt is not complete.", remedy="Give the JSON that the service returned.")
        return cls(**{**content, "rows": tuple(rows), "purged": None if purged is None else tuple(purged)})

    def content(self) -> dict[str, Any]:
        """Return the receipt as JSON has it."""
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def sealed(self, key: Key) -> Receipt:
        """Return the receipt with its seal."""
        return Receipt(**{**vars(self), "seal": self.expected_seal(key)})

    def expected_seal(self, key: Key) -> str:
        """Return the seal that the other fields must have."""
        rest = {name: value for name, value in self.content().items() if name != "seal"}
        text = dumps(rest, sort_keys=True, separators=(",", ":"))
        return blake2b(text.encode(), key=key.secret, digest_size=32).hexdigest()

    def is_sealed_by(self, key: Key) -> bool:
        """Tell whether no field was changed since the receipt was made."""
        return compare_digest(self.seal, self.expected_seal(key))


def timestamp(seconds: float) -> str:
    """Return a time in ISO 8601.

    >>> timestamp(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# -- verification ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Check:
    """One statement about a receipt, and whether it holds; None where it could not be checked."""

    what: str
    holds: bool | None


def verify(receipt: Receipt, journal: Any, key: Key) -> Iterator[Check]:
    """Check a receipt against the journal of the service that issued it."""
    yield Check("the receipt is unchanged since it was issued", receipt.is_sealed_by(key))
    entry = journal.entry(receipt.lesson)
    kept = entry is not None and entry.receipt is not None
    yield Check(
        f"the journal holds the same receipt for lesson {receipt.lesson}",
        kept and json.loads(dumps(entry.receipt)) == json.loads(dumps(receipt.content())),
    )
    if receipt.kind == "erase":
        held = [journal.entry(id) for id in (receipt.lesson, *(receipt.purged or ()))]
        purged = all(each is not None and (each.rows is None or None in each.rows) for each in held)
        yield Check("the erased rows are no longer in the journal", purged)


def verify_by_file(receipt: Receipt, model: Model) -> Iterator[Check]:
    """Check the sums of a model file that contains the lesson of a receipt and no later one."""
    digest = former_sums_digest if receipt.form == FORMER else sums_digest
    yield Check("the model file has the sums that the receipt states", digest(model.stats) == receipt.sums_after)


def verify_by_refit(receipt: Receipt, model: Model, batches: Iterable[Batch], key: Key) -> Iterator[Check]:
    """Check that the model is one learnt from the rows that the owner kept, and that no removed row is among them."""
    fitted = replace(model.blank(), ledger=None)
    kept: set[str] = set()
    for batch in batches:
        fitted = fitted.learn(fitted.lesson(batch))
        kept.update(row_digests(batch.table, model.reader.columns, np.asarray(batch.labels).tolist(), key))
    yield Check("no removed row is among the kept rows", not kept.intersection(receipt.rows))
    yield Check("the model has the sums of the kept rows alone, to nine digits", same_sums(fitted.stats, model.stats))


def same_sums(one: Stats, two: Stats) -> bool:
    """Tell whether two statistics have the same names, and sums that agree to nine digits of their largest."""
    first, second = Encoder(), Encoder()
    if first.encode(without_peaks(one), "") != second.encode(without_peaks(two), ""):
        return False
    for name, array in first.arrays.items():
        other = second.arrays[name]
        if array.shape != other.shape or array.dtype != other.dtype:
            return False
        if array.dtype.kind != "f":
            if not np.array_equal(array, other):
                return False
        elif not np.allclose(array, other, rtol=1e-9, atol=1e-9 * np.abs(other).max(initial=0.0), equal_nan=True):
            return False
    return True


def open_journal_of(model: Path) -> Any:
    """Open the journal beside a model file."""
    from deciban.service.journal import Journal

    path = journal_path(model)
    if not path.exists():
        raise ModelFileError(f"there is no journal {path}. Give the model file that the service was started with.")
    return Journal(path)


def journal_path(model: Path) -> Path:
    """Return the path of the journal of a model file."""
    return model.with_name(f"{model.name}.journal")
