"""Waits by functions of the kernel, of the C library and of runtimes. Each table names its source.

None of these names is one that a traced program chooses for its own functions: the tables are asked only about the
kernel's frames, and about frames of libraries and runtimes (`ownership`). The exceptions have their file beside them.
"""

from __future__ import annotations

import re

from .call_kinds import BY_CHILD, BY_EVENTS, BY_FILE, BY_PEER, BY_THREAD, BY_TIMER
from .wait_kinds import CHILD, EVENTS, PEER, SLEEP, THREAD, WORK

FUTEX_WAITS = frozenset(("futex_wait",))
"""kernel/futex/waitwake.c, under the one name that `kernel_sites` gives to its variants."""
FEW_EVENTS = frozenset(("do_poll", "do_sys_poll", "do_select"))
"""fs/select.c: functions that wait for one of a few files; many are waited for with epoll."""
FOR_SIGNALS = frozenset(("do_sigtimedwait", "sigsuspend", "__do_sys_pause"))
"""kernel/signal.c: functions that wait for a signal, such as that of a child that has ended."""
EVENT_WAITS = FEW_EVENTS | {
    *FOR_SIGNALS,
    *("ep_poll", "do_epoll_wait"),  # fs/eventpoll.c
    *("io_cqring_wait", "read_events"),  # io_uring, fs/aio.c
    "inet_csk_accept",  # net/ipv4/inet_connection_sock.c
    "userfaultfd_read_iter",  # fs/userfaultfd.c
    *("inotify_read", "fanotify_read", "signalfd_read_iter", "signalfd_dequeue"),  # fs/notify, fs/signalfd.c
    *("do_syslog", "devkmsg_read", "n_tty_read"),  # kernel/printk/printk.c, drivers/tty/n_tty.c
}
BY_KERNEL = {
    **dict.fromkeys(("do_nanosleep", "hrtimer_nanosleep"), SLEEP),  # kernel/time/hrtimer.c
    **dict.fromkeys(FUTEX_WAITS, THREAD),
    **dict.fromkeys(("pipe_read", "pipe_write", "wait_for_partner"), PEER),  # fs/pipe.c
    "eventfd_read": PEER,  # fs/eventfd.c
    **dict.fromkeys(("timerfd_read", "timerfd_read_iter"), SLEEP),  # fs/timerfd.c
    "fuse_dev_do_read": WORK,  # fs/fuse/dev.c: a file system's server waits for requests
    **dict.fromkeys(("sk_wait_data", "sock_alloc_send_pskb"), PEER),  # net/core/sock.c
    **dict.fromkeys(("unix_stream_data_wait", "unix_stream_read_generic", "unix_wait_for_peer"), PEER),  # net/unix
    "__skb_wait_for_more_packets": PEER,  # net/core/datagram.c
    "sk_stream_wait_memory": PEER,  # net/core/stream.c
    **dict.fromkeys(("__inet_stream_connect", "inet_wait_for_connect"), PEER),  # net/ipv4/af_inet.c
    **dict.fromkeys(EVENT_WAITS, EVENTS),
    "do_wait": CHILD,  # kernel/exit.c
}
"""The kind of an interruptible wait, by the innermost function of the kernel that is not the scheduler's."""
STARTS = frozenset(("vfork", "clone", "clone3"))
STARTS_WAIT = frozenset(("wait_for_vfork_done", "wait_for_completion_state", "wait_for_completion_killable"))
"""System calls, and functions of the kernel (kernel/fork.c), in which a thread waits until its child executes a program
or ends: vfork(2), posix_spawn(3)."""
FREEZERS = {"__refrigerator", "do_freezer_trap"}
"""kernel/freezer.c, kernel/signal.c: functions in which a control group's freezer, or a suspended host, keeps a thread,
wherever it was."""
KERNEL_LOCKS = re.compile(
    r"_*(rt_)?(mutex_lock|rwsem_down_|down_(read|write|interruptible|killable|timeout)?|rwbase_|rtmutex|percpu_rwsem|"
    r"locks_lock_inode_wait|fcntl_setlk|posix_lock_|lock_sock|ww_mutex)"
)
"""kernel/locking, fs/locks.c, net/core/sock.c: functions that wait for a lock, however the thread waits."""

BY_CALL = {BY_THREAD: THREAD, BY_TIMER: SLEEP, BY_CHILD: CHILD, BY_EVENTS: EVENTS, BY_PEER: PEER, BY_FILE: PEER}
"""The kind where the kernel's functions are not known: by who ends the call (`call_kinds`)."""
CONNECTIONS = frozenset(("accept", "accept4"))
"""System calls that wait for a connection from whomever."""

TAKE_GIL = "take_gil"
"""CPython's function that waits for its interpreter lock (Python/ceval_gil.h)."""
USER_LOCKS = (
    *("pthread_mutex_", "pthread_rwlock_", "lll_lock_wait"),  # glibc's nptl/, and musl's
    *("std::mutex::", "std::shared_mutex::"),  # libstdc++, where they are not inlined
    TAKE_GIL,
    *("ObjectMonitor::EnterI", "ObjectMonitor::enter"),  # HotSpot, src/hotspot/share/runtime/objectMonitor.cpp
)
"""Begins of functions of libraries whose futex wait is for a lock with a holder."""
JOINS = re.compile(r"_*pthread_(clock|timed|try)?join(_np|_ex)?(_common)?|thrd_join|std::thread::join")
"""Functions of libraries that wait for the end of a thread: glibc's nptl/, libstdc++."""
SCRIPT_JOINS = re.compile(r"(^|.*/)threading\.py:(Thread\.)?(join|_wait_for_tstate_lock)|Ljava/lang/Thread;::join.*")
"""Functions of scripts (``file:function``) and of compiled code that wait for a thread's end: Python's and Java's."""

THREAD_STARTS = re.compile(r"(^|.*/)threading\.py:(Thread\.)?(_bootstrap|_bootstrap_inner|run)")
"""Functions of Python's library (``file:function``) with which the stack of each thread begins."""

PYTHON_LOCKS = ("PyThread_acquire_lock_timed", "_PyMutex_LockTimed", "_PyRecursiveMutex_LockTimed")
"""Begins of CPython's functions that take a lock of a script (Python/thread_pthread.h, Python/lock.c). Python's library
takes such locks to wait for a signal, too: `SIGNALS`."""
SIGNALS = re.compile(
    r"(^|.*/)(threading\.py:(\w+\.)?(wait|_wait_for_tstate_lock)|queue\.py:.*|"
    r"(concurrent/futures|asyncio|multiprocessing)/.*)"
)
"""Functions of Python's library (``file:function``) that take a lock to wait until another thread frees it."""
QUEUES = ("simplequeue_", "_queue_SimpleQueue_")
"""Begins of functions of CPython that do it, too (Modules/_queuemodule.c)."""
QUEUE_FILES = re.compile(r"(.*/)?_queue\.[^/]*\.so")
"""Files of the module that has them, if it is one by itself: Debian's has no names of its own functions."""
LINKED_LOCKS = re.compile(
    r"<?(std::sys(_common)?::.*(Mutex|RwLock)>?::(lock|read|write)_contended|"
    r"parking_lot(_core)?::raw_(mutex|rwlock)::\w+>?::lock_(\w+_)?slow|absl::(lts_\w+::)?Mutex::(Lock|ReaderLock))"
)
"""Functions that programs have linked in, and that wait for a lock: Rust's (library/std/src/sys/sync), the crate
parking_lot's (src/raw_mutex.rs, raw_rwlock.rs), Abseil's (absl/synchronization/mutex.cc)."""
LOCKS_BY_TIMER = frozenset(("sqlite3InvokeBusyHandler", "sqliteDefaultBusyCallback"))
"""Functions that sleep and try again until a lock is free: SQLite's, for a locked database (src/btree.c, main.c)."""
FILE_LOCK_SCRIPTS = re.compile(
    r"(^|.*/)(filelock/(\w+/)?\w+\.py:(acquire|_poll_until_acquired)|fasteners/process_lock\.py:(acquire|_do_acquire)|"
    r"portalocker/utils\.py:acquire|borg/locking\.py:acquire)"
)
"""Functions of Python's libraries (``file:function``) that do it for a lock on a file: filelock, fasteners,
portalocker; BorgBackup, whose lock is a folder in the repository."""
LOCK_OF_FILE = "lock of a file"
"""Name that stands for all functions of `FILE_LOCK_SCRIPTS` where a lock is named."""
LOCKS_OF_PROGRAMS = dict.fromkeys(
    ("ProcSleep", "LWLockAcquire", "LWLockAcquireOrWait", "LWLockWaitForVar"), re.compile(r"postgres(ql)?")
)
"""Functions that wait for a lock that another process frees with a signal, a byte or a semaphore, by the program that
has them: PostgreSQL's (src/backend/storage/lmgr/proc.c, lwlock.c)."""
LOCKS_OF_STORAGE = re.compile(
    r"MDL_context::acquire_lock\w*|handler::(ha_(index|rnd|write|update|delete)|read_range)\w*|lock_wait"
)
"""Functions of MariaDB in which a statement waits, in a condition variable with a time limit, for the lock of a row
or a table: those of metadata (sql/mdl.cc), of the storage engines (sql/handler.cc), and InnoDB's
(storage/innobase/lock/lock0lock.cc)."""
TIMED = frozenset(("pthread_cond_timedwait", "pthread_cond_clockwait"))
STORAGE_FILES = re.compile(r"mariadbd|mysqld")
ROW_LOCK = "lock_wait"
"""Name that stands for all functions of `LOCKS_OF_STORAGE` where a lock is named."""
METADATA = re.compile(r"MDL_context::acquire_lock\w*")
"""Functions among `LOCKS_OF_STORAGE` that wait for the lock on the definition of a table, which each open transaction
holds that has used the table (sql/mdl.cc)."""
METADATA_LOCK = "MDL_context::acquire_lock"
"""Name that stands for all functions of `METADATA` where a lock is named."""
OF_DATABASES = frozenset((*LOCKS_BY_TIMER, *LOCKS_OF_PROGRAMS, ROW_LOCK, METADATA_LOCK))
LIGHT_LOCKS = tuple(name for name in LOCKS_OF_PROGRAMS if name.startswith("LWLock"))
"""Functions that wait for locks that PostgreSQL takes for a short time, to protect its own data."""

OF_PEER = re.compile(
    r"(.*[_:.]|)(recv|read|send|write|connect)|.*(Recv|Read|Send|Write|Connect)|PQ[a-z]\w*|pq[A-Z]\w*", re.DOTALL
)
"""Begins of a library's functions that wait with poll for what one other end does; those of libpq, which has one server
(interfaces/libpq/fe-misc.c)."""
SELECTS_FOR_PEER = re.compile(r"(Connection\.)?_poll|(Popen\.)?_communicate|curl_easy_perform")
"""Functions of Python's multiprocessing and subprocess that do it with a selector, and libcurl's for one transfer."""
CLIENT_CALLS = re.compile(r"connect|getaddrinfo|getnameinfo|gethostby\w+")
"""Functions of the C library that ask somebody and wait for the answer."""
CLIENTS = re.compile(
    r"PQ[a-z]\w*|mysql_(real_|send_)?(query|connect)\w*|curl_easy_perform|redisGetReply\w*|_php_stream_open_wrapper_ex"
)
"""Functions of libraries beside the C library that wait for an answer: libpq, libmariadb, libcurl, hiredis; of PHP,
which waits in it for the reply of a server (main/streams/streams.c, ext/standard/http_fopen_wrapper.c)."""
CLIENT_SCRIPTS = re.compile(
    r"(^|.*/)(http/client\.py:(getresponse|begin|_read_status)|socket\.py:create_connection|"
    r"smtplib\.py:(connect|getreply)|ftplib\.py:(connect|getline)|imaplib\.py:_get_response|"
    r"redis/client\.py:(execute_command|_send_command_parse_response)|"
    r"pika/adapters/blocking_connection\.py:(basic_(publish|get|qos)|(queue|exchange)_\w+|channel|confirm_delivery)|"
    r"pymysql/connections\.py:(connect|_read_bytes)|grpc/_channel\.py:(_blocking|__call__|with_call)|"
    r"celery/result\.py:(get|join|join_native))"
)
"""Functions of Python's libraries (``file:function``) that wait for an answer, and return when it has come. What waits
for messages of others (redis' subscribers, pika's consumers, streams of gRPC) is not among them."""
ASKS_OF_PROGRAMS = {"SyncRepWaitForLSN": re.compile(r"postgres(ql)?")}
"""Functions of programs that wait for an answer, by the programs' files: PostgreSQL's commits wait for a standby
(src/backend/replication/syncrep.c)."""
SELECTS = re.compile(r"(^|/)selectors\.py:|/multiprocessing/connection\.py:wait$")
"""Functions of Python's library (``file:function``) that wait for what they are given: their caller tells for what."""

SLEEPS = re.compile(r"JavaThread::sleep(_nanos)?|JVM_Sleep\w*")
"""Functions of runtimes that sleep in a condition variable: HotSpot's (src/hotspot/share/runtime/javaThread.cpp)."""
SERVERS = {
    "request_wait_answer": "the server of a FUSE file system",  # fs/fuse/dev.c
    "rpc_wait_bit_killable": "an NFS server",  # net/sunrpc/sched.c
}
"""Functions of the kernel that wait for the server of a file system."""
EVENT_LOOPS = frozenset(("ep_poll", "do_epoll_wait", "io_cqring_wait"))
"""Functions of the kernel in which event loops wait (fs/eventpoll.c, io_uring/io_uring.c)."""
SLEEPS_OF_PROGRAMS = {"Item_func_sleep::val_int": STORAGE_FILES}
"""Functions of programs that sleep, by the programs' files: MariaDB's function SLEEP (sql/item_func.cc)."""
CHILD_WAITS = re.compile(r"node::SyncProcessRunner::\w+")
"""Functions of runtimes that run an event loop until a process has ended: Node.js' (src/spawn_sync.cc)."""
LOADER, COLLECTIVE = "loader", "collective"
"""Parts of a training job that wait: its loader of data, and an operation in which all ranks meet."""
STARTED = "started"
"""Part that a thread waits for in a call for any event, if that is a process that it has started (`started`)."""
LOADERS = re.compile(r"(^|.*/)torch/utils/data/dataloader\.py:.*")
"""Functions of Python's libraries (``file:function``) that wait for the next batch: PyTorch's."""
COLLECTIVES = re.compile(
    r"c10d::(\w+::)*\w*Work\w*::\w*[wW]ait\w*|c10d::Reducer::finalize_backward|gloo::\w+|"
    r"P?MPI_(All|Barrier|Bcast|Gather|Reduce|Scatter|Wait|Recv|Sendrecv)\w*|"
    r"p?nccl(All|B(road)?cast|Reduce|Gather|Scatter|Send|Recv|GroupEnd|CommInitRank)\w*"
)
"""Functions of PyTorch (torch/csrc/distributed/c10d), Gloo, MPI (chapters 3 and 6 of the standard) and NCCL in which a
rank waits for others."""
FOR_ALL_RANKS = re.compile(
    r"c10d::Reducer::finalize_backward|gloo::\w+|P?MPI_(All|Barrier|Bcast|Gather|Reduce|Scatter)\w*|"
    r"p?nccl(All|B(road)?cast|Reduce|Gather|Scatter|CommInitRank)\w*"
)
"""Functions among `COLLECTIVES` in which all ranks meet. Others may wait for the message of one, or for anything."""
COLLECTIVE_FILES = re.compile(r"lib(nccl|rccl|mpi|mpich|gloo|torch_(cpu|cuda|hip))([-_.][-\w.]*)?\.so([.\d]*)")
"""Files that have them, also where a program ships them."""
HELPERS = re.compile(
    r"c10d::ProcessGroup\w+::(runLoop|\w+Loop)|gloo::transport::(\w+::)+run|nccl\w*Proxy(Progress|Service)\w*"
)
"""Functions in these files of threads that they start when a process becomes a rank: PyTorch's
(torch/csrc/distributed/c10d), Gloo's (gloo/transport/tcp/loop.cc) and NCCL's (src/proxy.cc)."""
COLLECTIVE_SCRIPTS = re.compile(
    r"(^|.*/)torch/distributed/distributed_c10d\.py:"
    r"(all_|barrier|broadcast|gather|monitored_barrier|recv|reduce|scatter|send)\w*"
)
"""Functions of Python's libraries (``file:function``) for operations of ranks."""
FOR_ALL_SCRIPTS = re.compile(
    r"(^|.*/)torch/distributed/distributed_c10d\.py:"
    r"(all_|barrier|broadcast|gather|monitored_barrier|reduce|scatter)\w*"
)
"""Functions among `COLLECTIVE_SCRIPTS` in which all ranks meet."""
GPU_CALLS = re.compile(
    r"cuda(Device|Thread|Stream|Event)Synchronize(_ptsz)?|cu(Ctx|Stream|Event)Synchronize(_ptsz)?|"
    r"cu(da)?Memcpy(?!\w*(Async|Peer))\w*"
)
"""Functions of CUDA's runtime and driver that return when the GPU has done what was asked (CUDA Runtime API and Driver
API, "API synchronization behavior"): they sleep, or run while they wait."""
GPU_FILES = re.compile(r"(.*/)?libcuda(rt)?(-[0-9a-f]+)?\.so(\.[\d.]+)?")
"""The files that have them."""

HELD_BY_ENGINE = "[stopped by eu-stack]"
NO_PLACE = frozenset(("[lost]", "[not sampled]", "[other stacks]", HELD_BY_ENGINE))
"""Frames for time whose place is not known, or that the engine itself took: nothing is said of it as of a wait."""
