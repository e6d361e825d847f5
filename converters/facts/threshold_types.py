"""Numbers with a unit and a reason, for `thresholds`."""

from __future__ import annotations


class Threshold(float):
    """A number that something is compared with."""

    unit: str
    reason: str

    def __new__(cls, value: float, unit: str, reason: str) -> Threshold:
        made = super().__new__(cls, value)
        made.unit, made.reason = unit, reason
        return made

    def __repr__(self) -> str:
        return f"Threshold({float(self):g}, {self.unit!r})"


class Limit(int):
    """The most that is told of something, or kept of it."""

    unit: str
    reason: str

    def __new__(cls, value: int, unit: str, reason: str) -> Limit:
        made = super().__new__(cls, value)
        made.unit, made.reason = unit, reason
        return made

    def __repr__(self) -> str:
        return f"Limit({int(self)}, {self.unit!r})"
