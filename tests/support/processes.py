"""Runs several Python processes together, as the workers of one cluster."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any


def free_ports(count: int) -> list[str]:
    """Returns ports of this machine that nothing listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [str(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def outputs(
    commands: Sequence[Sequence[str]], folder: Any = None, limit: float = 300
) -> list[str]:
    """Returns what each process printed; none may fail or take longer than `limit`."""
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    try:
        ends = [each.communicate(timeout=limit) for each in processes]
    finally:
        # One that waits for another would wait for ever.
        for each in processes:
            each.kill()
    for process, (_, messages) in zip(processes, ends, strict=True):
        assert process.returncode == 0, messages[-4000:]
    return [printed for printed, _ in ends]
