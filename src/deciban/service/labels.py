"""Labels as JSON has them, as the classes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from deciban.errors import UnknownLabelError, shortlist
from deciban.model.row_reader import checked_text, kind_of
from deciban.read.schema import Schema

Label: TypeAlias = str | int
MOST_LABEL = 200  # characters in the name of a class


def class_label(given: Any, classes: Sequence[Any], schema: Schema | None, *, new: bool) -> Label:
    """Return the class of the model that a label from JSON names; with `new`, it may be one that there is not yet.

    >>> class_label("1", [0, 1], None, new=False)
    1
    """
    if isinstance(given, bool) or not isinstance(given, str | int) or (isinstance(given, str) and not given.strip()):
        raise UnknownLabelError(
            f"{kind_of(given)} is not the name of a class.", remedy="Give a class as a text or as a whole number."
        )
    if isinstance(given, str) and len(given) > MOST_LABEL:
        raise UnknownLabelError(
            f"the name of a class has {len(given)} characters; at most {MOST_LABEL} are allowed.",
            remedy="Give a shorter name.",
        )
    if isinstance(given, int) and abs(given) >= 2**63:
        raise UnknownLabelError("the number of a class is too large.", remedy="Give a smaller number, or a text.")
    checked_text("label", str(given), 0)
    for name in classes:
        if str(name) == str(given):
            return name
    if not new or (schema is not None and schema.ranges is not None):
        raise UnknownLabelError(
            f"the model has no class {str(given)!r}; it has {shortlist([repr(str(name)) for name in classes], 10)}.",
            label=given,
            remedy="Correct the spelling, or teach the class first.",
        )
    if classes and all(isinstance(name, int) for name in classes):
        if str(given).lstrip("-").isdigit():
            return int(given)
        raise UnknownLabelError(
            f"the class {str(given)!r} is a text, but the classes of this model are whole numbers.",
            label=given,
            remedy="Give a whole number.",
        )
    return str(given)
