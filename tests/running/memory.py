"""Reads how much memory a process holds, and held at most."""

import contextlib
import ctypes
import pathlib
import resource
import sys

_PROCESS = pathlib.Path("/proc/self")


def held() -> float:
    """Returns the resident memory of this process, in MB."""
    if not (_PROCESS / "status").exists():
        return peak()
    return _from_status("VmRSS")


def peak() -> float:
    """Returns the highest resident memory since `forget_peak`, in MB.

    Outside Linux it is the highest since the process started.
    """
    if (_PROCESS / "status").exists():
        return _from_status("VmHWM")
    return _in_mb(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def children() -> float:
    """Returns the highest memory of one process that this one started, in MB."""
    return _in_mb(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def forget_peak() -> None:
    """Lets `peak` begin anew, where the system can do that."""
    with contextlib.suppress(OSError):
        (_PROCESS / "clear_refs").write_text("5")


def trim() -> None:
    """Returns freed memory to the system, where the C library can do that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _from_status(name: str) -> float:
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def _in_mb(maximum: int) -> float:
    # Bytes on macOS, kB on Linux.
    return maximum / (1024 * 1024 if sys.platform == "darwin" else 1024)
