"""The processes of a local cluster: `python -m pipeline.distributed.local_process scheduler|worker`.

The scheduler's process starts the workers, and starts another for each that dies. All of them

- listen on 127.0.0.1 alone, with TLS: the key is the run's own, so other users of the machine cannot connect either;
- have no HTTP server;
- ignore the user's Dask settings (`DASK_*`, ~/.config/dask), which could have them listen elsewhere or without TLS;
- end with the process that started them, however that ends: their stdin is a pipe which that process holds open.

The first line of stdin is `Settings` as JSON. The scheduler prints its address.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
# Seconds until a process that waits for its parent's end looks whether it has another parent, until a dead worker is
# replaced, and until a worker that finds no scheduler ends.
_LOOK, _RESTART, _NO_SCHEDULER = 1.0, 0.2, 60


@dataclass(frozen=True)
class Settings:
    """What a process gets: the cluster's certificate and key (PEM), and where it works.

    `workers`: how many the scheduler starts; `scheduler`: the address that a worker connects to.
    """

    certificate: str
    key: str
    folder: str
    workers: int = 0
    scheduler: str = ""

    def line(self) -> bytes:
        """As the first line of stdin."""
        return f"{json.dumps(asdict(self))}\n".encode()


def security_of(certificate: str, key: str) -> Any:
    """Dask's TLS settings by which only processes with this certificate talk to each other."""
    from distributed.security import Security

    roles = ("client", "scheduler", "worker")
    certificates = {f"tls_{role}_cert": certificate for role in roles} | {f"tls_{role}_key": key for role in roles}
    # None: Dask's defaults, whatever the user's settings are.
    defaults = dict.fromkeys(("tls_ciphers", "tls_min_version", "tls_max_version"))
    return Security(require_encryption=True, tls_ca_file=certificate, **certificates, **defaults)


def main(role: str) -> None:
    """Read the settings, and run until the process that started this one ends."""
    line = sys.stdin.readline()
    end_with_parent()
    if not line:
        return
    settings = Settings(**json.loads(line))
    forget_user_settings()
    without_http()
    asyncio.run(_scheduler(settings) if role == "scheduler" else _worker(settings))


def end_with_parent() -> None:
    """Kill this process group as soon as the process that started this one ends: with its workers, and their tools."""
    parent = os.getppid()
    # Tools that a stage starts shall not read the pipe.
    pipe = os.dup(0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)

    def watch() -> None:
        while os.getppid() == parent:
            if select.select([pipe], [], [], _LOOK)[0] and not os.read(pipe, 1):
                break
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def forget_user_settings() -> None:
    """Take Dask's settings back to its defaults; `distributed` reads some of them when it is imported."""
    import dask.config

    dask.config.refresh(paths=[], env={})


def without_http() -> None:
    """Start no HTTP server: it has no authentication, and Dask has no option for none."""
    from distributed.node import ServerNode

    ServerNode.start_http_server = lambda *_, **__: None


async def _scheduler(settings: Settings) -> None:
    from distributed import Scheduler

    security = security_of(settings.certificate, settings.key)
    async with Scheduler(host=HOST, port=0, protocol="tls", security=security, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        own = Settings(settings.certificate, settings.key, settings.folder, scheduler=scheduler.address)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(settings.workers):
                tasks.create_task(_keep_worker(own))


async def _keep_worker(settings: Settings) -> None:
    import dask.config

    environment = dask.config.get("distributed.nanny.pre-spawn-environ")
    single_threaded = {name: str(value) for name, value in environment.items()}
    # The command waits until the last copy of this pipe is closed.
    output = os.dup(1)
    while True:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", __spec__.name, "worker"),
            env={**single_threaded, **os.environ},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=[output],
        )
        assert process.stdin is not None
        process.stdin.write(settings.line())
        await process.wait()
        await asyncio.sleep(_RESTART)


async def _worker(settings: Settings) -> None:
    from distributed import Worker

    worker = Worker(
        settings.scheduler,
        host=HOST,
        protocol="tls",
        security=security_of(settings.certificate, settings.key),
        nthreads=1,
        memory_limit=0,
        local_directory=settings.folder,
        death_timeout=_NO_SCHEDULER,
    )
    async with worker:
        await worker.finished()


if __name__ == "__main__":
    main(sys.argv[1])
