"""Origins of traced processes: who started each, which program it runs, and what its environment says of its job."""

from __future__ import annotations

from dataclasses import dataclass, field

VARIABLES = (
    *("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NTASKS", "SLURM_LOCALID"),  # srun(1)
    *("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE"),  # Open MPI's mpirun(1), PMIx
    *("PMI_SIZE", "PMI_JOBID"),  # MPICH's Hydra, Slurm's PMI-2
    *("TORCHELASTIC_RUN_ID", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"),  # torchrun, torch.distributed
)
"""Environment variables that tell jobs apart, or their size. `ranks.VARIABLES` are kept as labels of samples."""
IDENTITIES = (
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("PMIX_NAMESPACE",),
    ("PMI_JOBID",),
    ("TORCHELASTIC_RUN_ID", "MASTER_PORT"),
    ("MASTER_ADDR", "MASTER_PORT"),
)
"""Variables whose values, taken together, are the same in all ranks of a job and in no other job of the host. The run
id of torchrun is "none" unless its user chooses one: it needs the port."""
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
"""Variables that have the number of ranks, where WORLD_SIZE is not set."""
ENVIRONMENT, MEMORY = "environment", "memory"
"""Sources of a rank: the environment with which the process was started; the environment in its memory, which it, or
the process that forked it, has changed since."""
MOST_ANCESTORS = 6
LONGEST = 256
"""Characters of a path or a value that are kept."""


@dataclass(slots=True)
class Ancestor:
    """A process that started a traced one, or one of its ancestors."""

    pid: int
    process: str
    """Name of the process, with the script that it runs (hostile)."""


@dataclass(slots=True)
class ProcessOrigin:
    """Origin of one process that was traced. Texts are hostile; "" is what is not known."""

    pid: int
    process: str
    ancestors: list[Ancestor] = field(default_factory=list)
    """The process that started it first; at most `MOST_ANCESTORS`, none with pid 1."""
    executable: str = ""
    """Path of the program."""
    cgroup: str = ""
    """Folder of the control group."""
    began: int = 0
    """Ticks of the kernel's clock from the start of the host to that of the process; 0 if it is not known."""
    variables: dict[str, str] = field(default_factory=dict)
    """Values by name, of those of `VARIABLES` that are set."""
    source: str = ""
    """Source of the rank: `ENVIRONMENT` or `MEMORY`; "" without one."""
    pid_life: int = 1
    """Number of the process among those that have had this pid during the trace, from 1."""
    launched: bool = False
    """Whether it is the command that the trace has started."""
