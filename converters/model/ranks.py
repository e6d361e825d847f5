"""Rank of a process in its job, and the GPUs that it has open: from its environment and its files.

A value is the label of the samples of that process, under the variable's name in lower case with dashes."""

from __future__ import annotations

from collections.abc import Mapping

VARIABLES = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "CUDA_VISIBLE_DEVICES",
)
"""torchrun's, Slurm's, Open MPI's, MPICH's, CUDA's. No other variables are looked at for this."""
GPU = "gpu"
"""Label of the minors of the devices /dev/nvidiaN that the process has open: ``3``, or ``0,1``."""
LONGEST = 128
"""Characters of a value."""


def label_of(variable: str) -> str:
    """``local-rank`` for ``LOCAL_RANK``."""
    return variable.lower().replace("_", "-")


LABELS = (*map(label_of, VARIABLES), GPU)
_RANKS = tuple(map(label_of, ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")))
"""The first of these that a process has is its rank."""


def rank_of(ranks: Mapping[str, str]) -> int | None:
    """The number of a rank, from values by label; None if there is none, or it is no number."""
    for label in _RANKS:
        if label in ranks:
            value = ranks[label]
            return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None
    return None
