"""Fixtures for attacks."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import leftovers
import pytest
from attackers import Attacker, compile_all
from leftovers import Host
from neighbours import Neighbour, neighbour
from stallscope.converters.base.errors import StallscopeError
from stallscope.tracers.base import privilege
from stallscope.tracers.base.scope import Scope
from stallscope.tracers.engines.ebpf.measures.registry import collectors
from stallscope.tracers.engines.ebpf.probes import ProbeOptions, Probes
from stallscope.tracers.measures.offcpu import OffCpu


@pytest.fixture(scope="session")
def hostile(require: Callable[[bool, str], None]) -> None:
    """Skips where BPF cannot run; with REQUIRE_LIVE=1 fails there."""
    require(privilege.allowed(), "tracing needs root")
    try:
        Probes(ProbeOptions(Scope(), collectors([OffCpu()])), lambda data: None).close()
    except StallscopeError as error:
        require(False, f"BPF cannot run here: {error}")


@pytest.fixture(scope="module", autouse=True)
def adopted() -> Iterator[None]:
    """Orphans become this process's: only here, for it waits for none that it does not know."""
    leftovers.adopt_orphans(adopts=True)
    yield
    leftovers.adopt_orphans(adopts=False)


@pytest.fixture(scope="session")
def open_folder(hostile: None) -> Iterator[Path]:
    """One that everybody can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="hostile-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="session")
def programs(open_folder: Path) -> Path:
    """The attacks that are written in C."""
    folder = open_folder / "programs"
    folder.mkdir()
    compile_all(folder)
    return folder


@pytest.fixture(scope="session")
def python(open_folder: Path) -> Path:
    """A Python that nobody else on this host runs."""
    path = open_folder / "python3.11"
    shutil.copy("/usr/bin/python3", path)
    return path


@pytest.fixture(scope="module")
def bystander(python: Path) -> Iterator[Neighbour]:
    """A process of a third user, which has to be unharmed."""
    with neighbour(python) as found:
        yield found


@pytest.fixture
def attacker(programs: Path) -> Iterator[Attacker]:
    with tempfile.TemporaryDirectory(prefix="hostile-", dir="/tmp") as name, Attacker(programs, Path(name)) as found:
        Path(name).chmod(0o755)
        yield found


@pytest.fixture
def nothing_left(hostile: None) -> Iterator[None]:
    """Nothing is attached and nothing runs afterwards that did not before."""
    before = Host.now()
    yield
    assert leftovers.left_since(before) == {}


@pytest.fixture
def outputs() -> Iterator[Path]:
    """A folder of root's."""
    with tempfile.TemporaryDirectory(prefix="outputs-") as name:
        yield Path(name)
