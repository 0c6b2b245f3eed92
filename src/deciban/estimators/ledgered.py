"""The ledger of a classifier: every row that it learns is noted, and only what is noted can be taken back."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from deciban.errors import Argument, MergeError, ModelFileError, NotAvailableError, NotLearntError, Remedy
from deciban.estimators.state import State
from deciban.model.ledger import Key, Ledger, row_hashes
from deciban.read.labels import encode_labels
from deciban.read.numbers import row_weights
from deciban.read.tables import Table
from deciban.statistics import Array


class Ledgered(State):
    """What a classifier notes about rows, where it keeps a ledger."""

    ledger: Any = False  # True, or a key
    ledger_: Ledger | None = None

    def _keep(self, ledger: Ledger | None) -> Self:
        self.ledger_ = ledger
        return self

    def _first_noted(self, table: Table, y: Any, sample_weight: Any) -> Ledger | None:
        """A ledger of the first rows; None where none is kept."""
        if self.ledger is False or self.ledger is None:
            return None
        key = Key.of(self.ledger)
        return Ledger.of(key).learn(_hashes(table, table.columns, y, sample_weight, key)[0])

    def _noted(self, ledger: Ledger | None, batch: Any, columns: Any) -> Ledger | None:
        """The ledger with the rows of a batch."""
        if ledger is None:
            return None
        return ledger.learn(_hashes(batch.table, columns, batch.labels, batch.weight, self._key(ledger))[0])

    def _struck(self, X: Any, y: Any, sample_weight: Any, now: Any = None) -> tuple[Ledger | None, Any]:
        """The ledger without rows, or with these moved to labels `now`, and the weights that they have by now."""
        if self.ledger_ is None:
            if self.decayed_:
                raise NotLearntError(
                    "this model has decayed, so the weight its rows have now is not the one they were learnt with. "
                    "Nothing was changed: unlearn before decay, refit, or keep a ledger (ledger=True) from the start."
                )
            return None, sample_weight
        table, key = self._table(X), self._key(self.ledger_)
        hashes, rows = _hashes(table, self.columns_, y, sample_weight, key)
        with table.located():
            left, since = self.ledger_.unlearn(hashes, rows)
        if now is not None:
            left = left.learn(_hashes(table, self.columns_, now, sample_weight, key)[0], since)
        if (since == 1).all():
            return left, sample_weight
        weight = np.zeros(len(table))
        given = row_weights(sample_weight, len(table))
        weight[rows] = since if given is None else since * given[rows]
        return left, weight

    def _no_rows_noted(self) -> Ledger | None:
        """A ledger under the same key with nothing in it."""
        return None if self.ledger_ is None else Ledger.of(self._key(self.ledger_))

    def _merged_ledger(self, other: Any) -> Ledger | None:
        if (self.ledger_ is None) != (other.ledger_ is None):
            raise MergeError(
                "one of the models keeps a ledger and the other does not, so the rows of the sum would be known in "
                "part. Fit both with one, or set ledger_ = None on the one that has it."
            )
        return None if self.ledger_ is None else self.ledger_.merge(other.ledger_)

    @abstractmethod
    def _table(self, X: Any) -> Table:
        """The table, with the columns that the model knows."""

    def _key(self, ledger: Ledger | None) -> Key:
        key = Key.of(self.ledger or None)
        if ledger is not None and key.id != ledger.key_id:
            raise NotAvailableError(
                f"this model keeps a ledger under a key (id {ledger.key_id}) that it was not given.",
                remedy=Remedy("Load it with its key: ", Argument("key", python="deciban.load(path, key=…)"), "."),
            )
        return key

    def _with_key(self, key: Any) -> Self:
        """The same model, holding the key of its ledger."""
        if self.ledger_ is None:
            raise ModelFileError("a key was given, but the model keeps no ledger. Load it without one.")
        if Key.of(key).id != self.ledger_.key_id:
            raise ModelFileError(f"the key given is not the one of the ledger (id {self.ledger_.key_id}).")
        self.ledger = key
        return self


def _hashes(table: Table, columns: Any, y: Any, sample_weight: Any, key: Key) -> tuple[Array, Array]:
    """The hashes of rows of positive weight, and their numbers."""
    n = len(table)
    weight = row_weights(sample_weight, n)
    if weight is None or weight.all():
        names, codes = encode_labels(y, n)
        return row_hashes(table, columns, names, codes, weight, key), np.arange(n)
    rows = np.flatnonzero(weight)
    labels = np.asarray(y) if hasattr(y, "dtype") else np.array(list(y), dtype=object)
    names, codes = encode_labels(labels[rows], len(rows))
    return row_hashes(table.take(rows), columns, names, codes, weight[rows], key), rows
