from __future__ import annotations

import pytest
from stallscope.converters.model.ranks import LABELS, label_of, rank_of


def test_labels_are_the_variables_names() -> None:
    assert label_of("CUDA_VISIBLE_DEVICES") == "cuda-visible-devices"
    assert LABELS[:3] == ("rank", "local-rank", "world-size")
    assert "gpu" in LABELS


@pytest.mark.parametrize(
    ("ranks", "rank"),
    [
        ({}, None),
        ({"rank": "3", "slurm-procid": "4"}, 3),
        ({"slurm-procid": "4", "pmi-rank": "5"}, 5),
        ({"slurm-procid": "4", "ompi-comm-world-rank": "6", "pmi-rank": "5"}, 6),
        ({"slurm-procid": "0"}, 0),
        ({"local-rank": "1", "world-size": "8"}, None),
        ({"rank": "-1"}, None),
        ({"rank": "three"}, None),
        ({"rank": "\u0663"}, None),
        ({"rank": "9" * 5000}, None),
    ],
)
def test_the_rank(ranks: dict[str, str], rank: int | None) -> None:
    assert rank_of(ranks) == rank
