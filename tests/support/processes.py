"""Runs several Python processes together, as the workers of one cluster."""

import os
import socket
from collections.abc import Sequence
from typing import Any

from tests.support import forks


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
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    programs = [forks.Program(command, folder, env) for command in commands]
    # One that waits for another would wait for ever.
    ends = [each.wait(limit) for each in programs]
    for end in ends:
        assert end.returncode == 0, end.stderr[-4000:]
    return [end.stdout for end in ends]
