"""What the parts of a classifier share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deciban.families.protocol import Rule
from deciban.model.model import ModelStats
from deciban.statistics import Array


class State:
    """The attributes of a classifier: as asked for, and as learnt."""

    # as asked for
    families: Any
    rule: Rule
    prior: Any
    cost: Any
    classes: Any
    calibrate: Any
    # as learnt
    asked_: Any  # the family as asked for, with what it left open
    family_: Any  # the family with its choices frozen
    reasons_: dict[str, str]  # block → why this family
    stats_: ModelStats
    classes_: Array
    columns_: Sequence[Any]  # a tuple of names, or a range where there are none
    n_features_in_: int
    feature_names_in_: Array
    decayed_: bool
    unlearnt_: bool
    calibration_: Any  # None, or a Calibration
    _density: Any  # None until it is needed after a change
