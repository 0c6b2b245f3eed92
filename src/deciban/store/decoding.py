"""Values of JSON and the arrays of a file, as `encoding` describes them; nothing in the file is trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import DecibanError, ModelFileError
from deciban.families.protocol import Density, Family
from deciban.statistics import Array
from deciban.store import checks, registry
from deciban.store.container import DTYPES, MOST_SIZE, Container, damaged
from deciban.store.encoding import place, stored

DEEPEST = 64


class Decoder:
    """Makes values of JSON and the arrays of a file; every array is used exactly once."""

    def __init__(self, container: Container) -> None:
        self.container = container
        self.left = set(container.entries)
        self.met: dict[str, Any] = {}

    def whole(self, node: Any, at: str) -> Any:
        """A value that uses all arrays of the file."""
        value = self.decode(node, at)
        if self.left:
            raise self.wrong(sorted(self.left)[0], "an array that no part of the model uses")
        return value

    def wrong(self, at: str, what: str) -> ModelFileError:
        """The error for something that is not as the format says."""
        return damaged(self.container.path, f"{at[:120] or 'the model'}: {what}")

    def decode(self, node: Any, at: str, depth: int = 0) -> Any:
        """The value of a node."""
        if depth > DEEPEST:
            raise self.wrong(at, "nested too deeply")
        if node is None or type(node) in (bool, str, int, float):
            return node
        if type(node) is list:
            return [self.decode(part, f"{at}.{i}", depth + 1) for i, part in enumerate(node)]
        kind = node.get("@")
        if not isinstance(kind, str):
            raise self.wrong(at, "an object that does not say what it is")
        act = PLAIN.get(kind)
        try:
            return act(self, node, at, depth + 1) if act else self._dataclass(kind, node, at, depth + 1)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError) as error:
            if isinstance(error, ModelFileError):
                known = str(error).startswith(self.container.path)
                raise error if known else ModelFileError(f"{self.container.path}: {at[:120]}: {error}") from None
            said = str(error) if isinstance(error, DecibanError) else f"not a {kind} ({error})"
            raise self.wrong(at, said[:300]) from None

    def take(self, name: Any, at: str, dtype: str | None = None, dims: int | None = None) -> Array:
        """An array that was not used before."""
        if not isinstance(name, str) or name not in self.left:
            raise self.wrong(at, "refers to an array that is not in the file, or to one used before")
        entry = self.container.entries[name]
        if (dtype is not None and entry.dtype != dtype) or (dims is not None and len(entry.shape) != dims):
            raise self.wrong(at, f"array {name!r} is of type {entry.dtype} and shape {entry.shape}")
        self.left.remove(name)
        return self.container.array(name)

    def _array(self, node: Any, at: str, depth: int) -> Array:
        array = self.take(node["at"], at)
        return array.T if {"C": False, "F": True}[node["order"]] else array

    def _range(self, node: Any, at: str, depth: int) -> range:
        if type(node["size"]) is not int or not 0 <= node["size"] <= MOST_SIZE:
            raise self.wrong(at, "a range of no size")
        return range(node["size"])

    def _float(self, node: Any, at: str, depth: int) -> float:
        return {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}[node["value"]]

    def _scalar(self, node: Any, at: str, depth: int) -> Any:
        value = self.decode(node["value"], at, depth)
        if node["dtype"] == "str":
            return np.str_(value) if type(value) is str else self._array(node, at, depth)
        if type(value) not in (bool, int, float):
            raise self.wrong(at, "a scalar that is not a number")
        return np.dtype(DTYPES[node["dtype"]]).type(value)

    def _names(self, node: Any, at: str, depth: int) -> Array:
        values = self.decode(node["values"], at, depth)
        flat = np.empty(len(values), dtype=object)
        flat[:] = values
        plain = {"object": flat, "str": flat.astype(str) if len(flat) else flat.astype("<U1")}[node["dtype"]]
        return plain.reshape(tuple(map(int, node["shape"])))

    def _dict(self, node: Any, at: str, depth: int) -> dict[Any, Any]:
        pairs = [(self.decode(key, f"{at}.key", depth), value) for key, value in node["items"]]
        made = {key: self.decode(value, f"{at}.{place(key, i)}", depth) for i, (key, value) in enumerate(pairs)}
        if len(made) < len(pairs):
            raise self.wrong(at, "a dict with the same key twice")
        return made

    def _sequence(self, node: Any, at: str, depth: int) -> Any:
        make = tuple if node["@"] == "tuple" else list
        of = node.get("of")
        if of is None:
            return make(self.decode(part, f"{at}.{i}", depth) for i, part in enumerate(node["items"]))
        if of == "str":
            return make(self._strings(node, at))
        if of in ("int", "float"):
            return make(self.take(node["at"], at, {"int": "I64", "float": "F64"}[of], 1).tolist())
        columns = [self.decode(column, f"{at}.{j}", depth) for j, column in enumerate(node["columns"])]
        if of != "tuple" or not columns or not all(type(column) is tuple for column in columns):
            raise self.wrong(at, "a sequence of nothing known")
        return make(zip(*columns, strict=True))

    def _strings(self, node: Any, at: str) -> list[str]:
        text = self.take(node["text"], at, "U8", 1).tobytes()
        ends = self.take(node["ends"], at, "I64", 1)
        if len(ends) and not (ends[0] >= 0 and ends[-1] == len(text) and (ends[1:] >= ends[:-1]).all()):
            raise self.wrong(at, "strings that do not lie end to end")
        if not len(ends) and text:
            raise self.wrong(at, "text without strings")
        stops = ends.tolist()
        if text.isascii():
            plain = text.decode("ascii")
            return [plain[a:b] for a, b in zip([0, *stops], stops)]
        return [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *stops], stops)]

    def _same(self, node: Any, at: str, depth: int) -> Any:
        return self.met[node["as"]]

    def _model(self, node: Any, at: str, depth: int) -> Any:
        return self.decode(node["record"], at, depth).restored(None, None)

    def _dataclass(self, kind: str, node: Any, at: str, depth: int) -> Any:
        cls = registry.find(kind)
        known = stored(cls)
        node = {registry.FORMERLY.get(f"{cls.__name__}.{name}", name): part for name, part in node.items()}
        unknown = [name for name in node if name != "@" and name not in known]
        if unknown:
            raise self.wrong(at, f"{kind} has no field {unknown[0][:80]!r}")
        missing = [name for name, needed in known.items() if needed and name not in node]
        if missing:
            raise self.wrong(at, f"{kind} lacks its field {missing[0]!r}")
        values = {
            name: self.decode(part, f"{at}.{name}" if at else name, depth) for name, part in node.items() if name != "@"
        }
        checks.declared(cls, values)
        made = cls(**values)
        checks.structure(made)
        if isinstance(made, Family | Density):
            self.met[at] = made
        return made


PLAIN: dict[str, Any] = {
    "array": Decoder._array,
    "range": Decoder._range,
    "float": Decoder._float,
    "scalar": Decoder._scalar,
    "names": Decoder._names,
    "dict": Decoder._dict,
    "tuple": Decoder._sequence,
    "list": Decoder._sequence,
    "same": Decoder._same,
    "model": Decoder._model,
}
