"""Answers about calls, as data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.text import json_text
from ..model.asked_values import AskedValues


def to_json(answers: Sequence[AskedValues]) -> list[dict[str, Any]]:
    """An entry per question and function."""
    return [
        {
            "ask": each.ask,
            "expression": json_text(each.text),
            "name": json_text(each.name),
            "library": json_text(each.library),
            "count": each.count,
            "sum": None if each.ask == "count-by" else each.sum,
            "mean": each.mean if each.count and each.ask != "count-by" else None,
            "buckets": [{"from": low, "to": high, "count": number} for low, high, number in each.buckets],
            "values": [{"value": json_text(value), "count": number} for value, number in each.values],
            "others": each.others,
        }
        for each in answers
    ]
