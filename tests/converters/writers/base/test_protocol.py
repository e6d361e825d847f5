from __future__ import annotations

import pytest
from stallscope.converters.writers import output

ARGUMENTS = ["Profile", "BinaryIO", "WriteOptions", "None"]


@pytest.mark.parametrize("name", output.formats())
def test_every_writer_keeps_the_protocol(name: str) -> None:
    write = vars(output.writer_for("-", name))["write"]
    assert [*write.__annotations__.values()] == ARGUMENTS
