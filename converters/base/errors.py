"""The only error type that a command reports to its user."""

from __future__ import annotations


class StallscopeError(Exception):
    """Error that says what went wrong and what to do about it, one line each.

    Raised anywhere below a command and caught in one place, which prints ``cause`` and ``remedy``
    and exits with ``exit_code``: 1 for a failure, 2 for wrong usage. ``details``: lines that only -v prints.
    ``excerpt``: lines between the two, such as the wrong text and a mark under the fault.
    """

    def __init__(
        self, cause: str, remedy: str = "", *, exit_code: int = 1, details: str = "", excerpt: tuple[str, ...] = ()
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy
        self.exit_code = exit_code
        self.details = details
        self.excerpt = excerpt

    def __str__(self) -> str:
        return f"{self.cause}\n{self.remedy}" if self.remedy else self.cause
