"""Takes what names hosts, users, paths, arguments and private programs out of a profile, so that it can be mailed.

What is known to be public stays (`public`); everything else gets a pseudonym (`pseudonyms`), the same wherever it
occurs. Each text of each part of a profile has a rule (`fields`); a text without one is an error, not a leak.
"""

from .transform import anonymised

__all__ = ["anonymised"]
