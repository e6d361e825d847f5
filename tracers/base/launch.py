"""``-- COMMAND ARGS…``: starts a process that waits before its first instruction until the trace has begun."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal

from ...converters.base.errors import StallscopeError
from . import last_line


class Launch:
    """A forked child, stopped before exec. It runs as SUDO_UID's user when the tracer runs under sudo."""

    def __init__(self, command: list[str], *, quiet: bool = False) -> None:
        """``quiet``: its standard output goes to standard error."""
        self._command = command
        self._status: int | None = None
        self._cpu_time: int | None = None
        self._parent = os.getpid()
        # If SIGCHLD is ignored, which is inherited, the kernel keeps no exit status.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gate_read, self._gate = os.pipe2(os.O_CLOEXEC)
        self._report, report_write = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._gate)
                _wait_quietly()
                if os.read(gate_read, 1):  # end of file: the tracer is gone
                    last_line.release()
                    _become_invoker()
                    _default_signals()
                    if quiet:
                        os.dup2(2, 1)
                    os.execvp(command[0], command)
            except OSError as error:
                os.write(report_write, str(error.errno).encode())
            except Exception as error:
                os.write(report_write, f"{type(error).__name__}: {error}".encode(errors="replace"))
            finally:
                os._exit(127)
        os.close(gate_read)
        os.close(report_write)

    @property
    def command(self) -> list[str]:
        """The command and its arguments."""
        return self._command

    @property
    def cpu_time(self) -> int | None:
        """ns that it had on cores, with all of its descendants that were waited for; None before its end is known."""
        return self._cpu_time

    def go(self) -> None:
        """Lets it run. StallscopeError when the command cannot be executed."""
        with contextlib.suppress(BrokenPipeError):  # already ended, perhaps by Ctrl-C
            os.write(self._gate, b"g")
        os.close(self._gate)
        self._gate = -1
        error = os.read(self._report, 512).decode(errors="replace")
        os.close(self._report)
        if error:
            self.wait()
            reason = os.strerror(int(error)) if error.isdigit() else error
            raise StallscopeError(
                f"cannot run {self._command[0]!r}: {reason}", "give a command that your user can run, after `--`"
            )

    def poll(self) -> int | None:
        """Exit status, -N where signal N ended it; None while it runs, and in other processes than its parent."""
        if self._status is None and os.getpid() == self._parent:
            self._reap(os.WNOHANG)
        return self._status

    def wait(self) -> int:
        """Waits for its end; returns the status like `poll`."""
        if self._status is None:
            self._reap(0)
        assert self._status is not None
        return self._status

    def _reap(self, options: int) -> None:
        pid, status, used = os.wait4(self.pid, options)
        if pid:
            self._status = os.waitstatus_to_exitcode(status)
            self._cpu_time = round((used.ru_utime + used.ru_stime) * 1e9)

    def stop(self) -> None:
        """Ends it if it still runs. Ctrl-C has reached it already (same process group); otherwise sends SIGTERM."""
        if self._gate >= 0:
            os.close(self._gate)
            self._gate = -1
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)


def ending(status: int) -> str:
    """A command's end in words. ``status`` is from `Launch.poll`."""
    if status < 0:
        return f"the command was ended by {_signal(-status)}"
    # How a shell reports a process that was ended by a signal.
    by = f" (128 + {_signal(status - 128)})" if 128 < status <= 128 + signal.SIGRTMAX else ""
    return f"the command ended with status {status}{by}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def shell_status(status: int) -> int:
    """A status from `Launch.poll` as a shell reports it: 128 + N for signal N."""
    return status if status >= 0 else 128 - status


def _become_invoker() -> None:
    """Switches, in the child, to the user who called sudo, with their groups and home."""
    uid, gid = (os.environ.get(name, "") for name in ("SUDO_UID", "SUDO_GID"))
    if os.geteuid() != 0 or not (uid.isascii() and uid.isdigit()) or int(uid) == 0:
        return
    try:
        user = pwd.getpwuid(int(uid))
    except KeyError:  # from a directory service that does not answer
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
        return
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name, SHELL=user.pw_shell or "/bin/sh")


def _wait_quietly() -> None:
    """Prepares the child to wait: until it may begin, Ctrl-C is left to the tracer, and SIGTERM has its default
    effect."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _default_signals() -> None:
    """Resets, in the child, the signals that Python ignores or handles."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
