"""Codec of model files: values to JSON and arrays, and back; the same for every model.

None, booleans, numbers and text are JSON values. Everything else is a JSON object whose key "@" names its kind:

    {"@": "array", "at": "stats.rows", "order": "C"}          an array of the file
    {"@": "tuple", "items": […]}  {"@": "dict", "items": [[key, value], …]}  {"@": "range", "size": 5}
    {"@": "tuple", "of": "str", "text": "….text", "ends": "….ends"}   strings: joined UTF-8, and the end of each
    {"@": "tuple", "of": "int" | "float", "at": "…"}          many numbers
    {"@": "tuple", "of": "tuple", "columns": […]}             many tuples of one length, as columns
    {"@": "float", "value": "inf"}  {"@": "scalar", "dtype": "F64", "value": 1.5}  {"@": "names", "dtype": …, …}
    {"@": "Gaussian", "structure": "full", …}                 a dataclass of the registry, field by field
    {"@": "same", "as": "family_"}                            a family or density that occurred before
    {"@": "model", "record": {…}}                             a model inside a model, as a dataclass

Lists are JSON arrays; a long list is an object like a long tuple, with "@": "list".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from typing import Any, NoReturn, TypeAlias

import numpy as np

from deciban.errors import DecibanError, ModelFileError
from deciban.families.protocol import Density, Family
from deciban.statistics import Array, Axis, LazyNames
from deciban.store import checks, registry
from deciban.store.container import CODES, DTYPES, MOST_SIZE, Container, damaged

LONG = 32  # sequences of this length or more are stored as arrays
MANY_WORDS = 4096  # names of an axis that are not made strings when a file is loaded
LARGEST = 2**63  # integers below it fit in an array
MOST_STEPS = 10_000  # length of a range that does not start at 0, which is stored as a tuple
DEEPEST = 64  # levels of nested values in a file

Node: TypeAlias = dict[str, Any]  # a JSON object


class Encoder:
    """Encodes a value as JSON, and collects its arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.names = registry.names()  # what the file calls each class
        self.places: dict[int, str] = {}  # identity of a family or density that is being saved → its path

    def encode(self, value: object, at: str) -> Any:
        """Return a value as JSON; `at` is its path in the model."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return value if abs(value) < 10**300 else self._refuse(value, at)
        if type(value) is float:
            return value if isfinite(value) else {"@": "float", "value": str(value)}
        if isinstance(value, np.generic):
            return self._scalar(value, at)
        if isinstance(value, np.ndarray):
            return self._array(value, at)
        if type(value) is tuple or type(value) is list:
            return self._sequence(value, at)
        if isinstance(value, LazyNames):
            return self._names(value, at)
        if type(value) is range and value == range(len(value)):
            return {"@": "range", "size": len(value)}
        if type(value) is range and len(value) <= MOST_STEPS:
            return self._sequence(tuple(value), at)  # such as the numbers of components to choose from
        if isinstance(value, Mapping):
            return {"@": "dict", "items": [self._pair(key, part, at, i) for i, (key, part) in enumerate(value.items())]}
        record = as_record(value)
        if is_dataclass(record) and not isinstance(record, type):
            written = self._dataclass(record, at)
            return written if record is value else {"@": "model", "record": written}
        return self._refuse(value, at)

    def _pair(self, key: object, value: object, at: str, i: int) -> list[Any]:
        return [self.encode(key, f"{at}.key{i}"), self.encode(value, f"{at}.{place(key, i)}")]

    def _put(self, array: Array, at: str) -> str:
        """Keep an array under a unique name: its path, shortened where it is too long for a name."""
        name = at[:200] or "value"
        while name in self.arrays:
            name += "_"
        self.arrays[name] = array
        return name

    def _refuse(self, value: object, at: str) -> NoReturn:
        raise ModelFileError(
            f"{at} is {repr(value)[:80]} of type {type(value).__name__}, which a model file cannot hold. "
            "Use text, numbers, tuples, dicts, arrays or dataclasses of a family."
        )

    def _scalar(self, value: np.generic, at: str) -> Any:
        if isinstance(value, np.str_):
            return {"@": "scalar", "dtype": "str", "value": str(value)}
        if value.dtype not in CODES:
            self._refuse(value, at)
        return {"@": "scalar", "dtype": CODES[value.dtype], "value": self.encode(value.item(), at)}

    def _array(self, value: Array, at: str) -> Any:
        plain = value.view(np.ndarray)
        if plain.dtype.kind in "OU":
            kind = "object" if plain.dtype == object else "str"
            names = self._sequence(plain.ravel().tolist(), at)
            return {"@": "names", "dtype": kind, "shape": list(plain.shape), "values": names}
        if plain.dtype.newbyteorder("<") not in CODES:
            self._refuse(value, at)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        # the memory order determines the order of summation; it is kept where rounding depends on it
        columns_first = plain.flags.f_contiguous and not plain.flags.c_contiguous and not exact(plain)
        name = self._put(plain.T if columns_first else plain, at)
        return {"@": "array", "at": name, "order": "F" if columns_first else "C"}

    def _names(self, names: LazyNames, at: str) -> Any:
        """Return names as a tuple is written; those of a large vocabulary are not made strings."""
        if len(names) < MANY_WORDS:
            return self._sequence(tuple(names), at)
        from deciban.text.vocabulary import Vocabulary  # a model of other columns needs no modules of texts

        if not isinstance(names.source, Vocabulary):
            return self._sequence(tuple(names), at)
        text, ends = names.source.utf8()
        return {"@": "tuple", "of": "str", "text": self._put(text, f"{at}.text"), "ends": self._put(ends, f"{at}.ends")}

    def _sequence(self, values: Sequence[Any], at: str) -> Any:
        kind = "tuple" if type(values) is tuple else "list"
        types = set(map(type, values)) if len(values) >= LONG else set()
        if types == {str}:
            texts = [name.encode("utf-8", "surrogatepass") for name in values]
            text = self._put(np.frombuffer(b"".join(texts), np.uint8), f"{at}.text")
            ends = self._put(np.cumsum([len(text) for text in texts], dtype=np.int64), f"{at}.ends")
            return {"@": kind, "of": "str", "text": text, "ends": ends}
        if types == {float} or (types == {int} and all(-LARGEST <= number < LARGEST for number in values)):
            name = self._put(np.array(values, np.float64 if types == {float} else np.int64), at)
            return {"@": kind, "of": "float" if types == {float} else "int", "at": name}
        if types == {tuple} and len(values[0]) and len(set(map(len, values))) == 1:
            columns = [self._sequence(column, f"{at}.{j}") for j, column in enumerate(zip(*values))]
            return {"@": kind, "of": "tuple", "columns": columns}
        each = [self.encode(part, f"{at}.{i}") for i, part in enumerate(values)]
        return each if kind == "list" else {"@": "tuple", "items": each}

    def _dataclass(self, value: Any, at: str) -> Node:
        if isinstance(value, Family | Density):
            if id(value) in self.places:
                return {"@": "same", "as": self.places[id(value)]}
            self.places[id(value)] = at
        kind: Any = type(value)
        if kind not in self.names:
            self.names[kind] = registry.name_of(kind)
        return {"@": self.names[kind]} | {
            name: self.encode(getattr(value, name), f"{at}.{name}" if at else name) for name in stored(kind)
        }


def as_record(model: object) -> object:
    """Return the dataclass stored for a model: that of its method `stored`, that of any estimator, or the model."""
    if hasattr(model, "stored"):
        return model.stored()
    if type(model).__module__.startswith(("numpy", "builtins")) or is_dataclass(model):
        return model
    from deciban.store.estimators import Estimator, is_estimator  # scikit-learn is slow to import

    return Estimator.of(model) if is_estimator(model) else model


def place(key: object, i: int) -> str:
    """Return the path element of the i-th key of a dict: the key if it can be part of an array's name, else i."""
    return key[:40] if isinstance(key, str) and key.isascii() and key.isidentifier() else str(i)


def exact(array: Array) -> bool:
    """Whether sums of these numbers are exact in any order: counts, and moderate multiples of 2⁻²⁰."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = array * 2.0**20
        return bool(np.abs(scaled).sum() < 2**53 and (scaled == np.rint(scaled)).all())


@cache
def stored(cls: Any) -> dict[str, bool]:
    """Return the stored fields of a dataclass, and whether each is required: fields added later have a default."""
    return {
        f.name: f.default is MISSING and f.default_factory is MISSING
        for f in fields(cls)
        if f.init and f.metadata.get("stored", True)
    }


@cache
def absent(cls: type) -> dict[str, Any]:
    """Return the values of fields that a former version did not write, where they differ from the default."""
    return {f.name: f.metadata["absent"] for f in fields(cls) if "absent" in f.metadata}


# -- decoding --------------------------------------------------------------------------------------------------------
class Decoder:
    """Decodes JSON and the arrays of a file, none of which is trusted; every array is used exactly once."""

    def __init__(self, container: Container, trust_pattern: bool = False) -> None:
        self.container = container
        self.trust_pattern = trust_pattern
        self.unused = set(container.entries)
        self.decoded: dict[str, Family[Any] | Density] = {}  # path → family or density

    def whole(self, node: object, at: str) -> Any:
        """Return a value that uses all arrays of the file."""
        value = self.decode(node, at)
        if self.unused:
            raise self.wrong(sorted(self.unused)[0], "an array that no part of the model uses")
        return value

    def wrong(self, at: str, what: str) -> ModelFileError:
        """Return the error for a part of the file that violates the format."""
        return damaged(self.container.path, f"{at[:120] or 'the model'}: {what}")

    def decode(self, node: object, at: str, depth: int = 0) -> Any:
        """Return the value of a JSON node."""
        if depth > DEEPEST:
            raise self.wrong(at, "nested too deeply")
        if node is None or type(node) in (bool, str, int, float):
            return node
        if isinstance(node, list):
            return self._elements(node, at, depth + 1)
        if not isinstance(node, dict) or not isinstance(node.get("@"), str):
            raise self.wrong(at, 'an object without a kind: the key "@" is missing')
        kind: str = node["@"]
        decode = PLAIN.get(kind)
        try:
            return decode(self, node, at, depth + 1) if decode else self._dataclass(kind, node, at, depth + 1)
        except checks.MISMATCH as error:
            if isinstance(error, ModelFileError):
                if error.place is not None:
                    raise
                raise error.but(f"{at[:120]}: ", *error.args, place=self.container.path) from None
            why = str(error) if isinstance(error, DecibanError) else f"not a valid {kind} ({error})"
            raise self.wrong(at, why[:300]) from None

    def take(self, name: object, at: str, dtype: str | None = None, dims: int | None = None) -> Array:
        """Return an array that was not used before."""
        if not isinstance(name, str) or name not in self.unused:
            raise self.wrong(at, "refers to an array that is not in the file or was used before")
        entry = self.container.entries[name]
        if (dtype is not None and entry.dtype != dtype) or (dims is not None and len(entry.shape) != dims):
            raise self.wrong(at, f"array {name!r} has the wrong type {entry.dtype} or shape {entry.shape}")
        self.unused.remove(name)
        return self.container.array(name)

    def _array(self, node: Node, at: str, depth: int) -> Array:
        array = self.take(node["at"], at)
        return array.T if {"C": False, "F": True}[node["order"]] else array

    def _range(self, node: Node, at: str, depth: int) -> range:
        if type(node["size"]) is not int or not 0 <= node["size"] <= MOST_SIZE:
            raise self.wrong(at, "a range whose size is not a number from 0 to 2⁴⁰")
        return range(node["size"])

    def _float(self, node: Node, at: str, depth: int) -> float:
        return {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}[node["value"]]

    def _scalar(self, node: Node, at: str, depth: int) -> Any:
        value = self.decode(node["value"], at, depth)
        if node["dtype"] == "str":
            return np.str_(value) if type(value) is str else self._array(node, at, depth)
        if type(value) not in (bool, int, float):
            raise self.wrong(at, "a scalar that is not a number")
        return np.dtype(DTYPES[node["dtype"]]).type(value)

    def _names(self, node: Node, at: str, depth: int) -> Array:
        values = self.decode(node["values"], at, depth)
        if type(values) not in (list, tuple):  # a range would be an array of a size that the file claims
            raise self.wrong(at, "names that are not a list")
        flat = np.empty(len(values), dtype=object)
        flat[:] = values
        plain = {"object": flat, "str": flat.astype(str) if len(flat) else flat.astype("<U1")}[node["dtype"]]
        return plain.reshape(tuple(map(int, self._list(node, "shape", at))))

    def _dict(self, node: Node, at: str, depth: int) -> dict[Any, Any]:
        found = [(self.decode(key, f"{at}.key", depth), value) for key, value in self._list(node, "items", at)]
        # equal, and comparable with other keys: a number of numpy compares itself with the items of a tuple
        pairs = [(key.item() if isinstance(key, np.generic) else key, value) for key, value in found]
        made = {key: self.decode(value, f"{at}.{place(key, i)}", depth) for i, (key, value) in enumerate(pairs)}
        if len(made) < len(pairs):
            raise self.wrong(at, "a dict with the same key twice")
        return made

    def _sequence(self, node: Node, at: str, depth: int) -> Any:
        make = tuple if node["@"] == "tuple" else list
        of = node.get("of")
        if of is None:
            return make(self._elements(self._list(node, "items", at), at, depth))
        if of == "str":
            return make(self._strings(node, at))
        if of in ("int", "float"):
            return make(self.take(node["at"], at, {"int": "I64", "float": "F64"}[of], 1).tolist())
        columns = [self.decode(column, f"{at}.{j}", depth) for j, column in enumerate(self._list(node, "columns", at))]
        if of != "tuple" or not columns or not all(type(column) is tuple for column in columns):
            raise self.wrong(at, "a sequence of an unknown kind")
        return make(zip(*columns, strict=True))

    def _list(self, node: Node, key: str, at: str) -> list[Any]:
        """Return a part of a node that must be a list: the keys of an object would pass for its elements."""
        if not isinstance(node[key], list):
            raise self.wrong(at, f"{key} that are not a list")
        return node[key]

    def _elements(self, items: list[Any], at: str, depth: int) -> list[Any]:
        """Return the elements of a sequence. A long range among them could become an array of a size a file claims."""
        found = [self.decode(part, f"{at}.{i}", depth) for i, part in enumerate(items)]
        if range in set(map(type, found)) and any(type(part) is range and len(part) > MOST_STEPS for part in found):
            raise self.wrong(at, f"a range of more than {MOST_STEPS:,} numbers within a sequence")
        return found

    def _text(self, node: Node, at: str) -> tuple[Array, Array]:
        """Return joined UTF-8, and the end of each string in it."""
        text, ends = self.take(node["text"], at, "U8", 1), self.take(node["ends"], at, "I64", 1)
        if len(ends) and not (ends[0] >= 0 and ends[-1] == len(text) and (ends[1:] >= ends[:-1]).all()):
            raise self.wrong(at, "strings whose ends do not match the text")
        if not len(ends) and len(text):
            raise self.wrong(at, "text that belongs to no string")
        return text, ends

    def _decode_of_axis(self, node: object, at: str, depth: int) -> Any:
        """Return the value of a field of an axis; many words stay joined until their names are asked for."""
        if not isinstance(node, dict) or node.get("@") != "tuple" or node.get("of") != "str":
            return self.decode(node, at, depth)
        entry = self.container.entries.get(str(node.get("ends")))
        if entry is None or entry.shape < (MANY_WORDS,):
            return self.decode(node, at, depth)
        from deciban.text.vocabulary import joined_words  # a model of other columns needs no modules of texts

        words = joined_words(*self._text(node, at))
        if words is None:
            raise self.wrong(at, "words that are not UTF-8, or that occur twice")
        return LazyNames(words)

    def _strings(self, node: Node, at: str) -> list[str]:
        letters, ends = self._text(node, at)
        text, stops = letters.tobytes(), ends.tolist()
        if text.isascii():
            plain = text.decode("ascii")
            return [plain[a:b] for a, b in zip([0, *stops], stops)]
        return [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *stops], stops)]

    def _same(self, node: Node, at: str, depth: int) -> Any:
        return self.decoded[node["as"]]

    def _model(self, node: Node, at: str, depth: int) -> Any:
        return self.decode(node["record"], at, depth).restored(None, None)

    def _dataclass(self, kind: str, node: Node, at: str, depth: int) -> Any:
        cls = registry.find(kind)
        known = stored(cls)
        if node.keys() - {"@"} != known.keys():
            renamed = [(registry.FORMERLY.get(f"{cls.__name__}.{name}", name), part) for name, part in node.items()]
            node = {name: part for name, part in renamed if name is not None}
        unknown = [name for name in node if name != "@" and name not in known]
        if unknown:
            raise self.wrong(at, f"{kind} has no field {unknown[0][:80]!r}")
        missing = [name for name, needed in known.items() if needed and name not in node]
        if missing:
            raise self.wrong(at, f"{kind} lacks its field {missing[0]!r}")
        decode = self._decode_of_axis if cls is Axis else self.decode
        values = {
            name: decode(part, f"{at}.{name}" if at else name, depth) for name, part in node.items() if name != "@"
        }
        values = absent(cls) | values
        checks.check_types(cls.__name__, registry.field_types(cls), values)
        if not self.trust_pattern:
            checks.pattern(cls, values)
        made = checks.with_keys_of_blocks(cls(**values))
        checks.structure(made)
        if isinstance(made, Family | Density):
            self.decoded[at] = made
        return made


PLAIN: dict[str, Callable[[Decoder, Node, str, int], Any]] = {  # "@" → how it is decoded
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
