"""Processes of a local cluster: `python -m pipeline.distributed.local_process ROLE`.

ROLE is scheduler or worker. The scheduler's process starts the workers and replaces workers that die. All of them

- listen on 127.0.0.1 with TLS; the key is created for the run, so other users of the machine cannot connect;
- have no HTTP server;
- ignore the user's Dask settings (`DASK_*`, ~/.config/dask), which could change address or disable TLS;
- end with the process that started them: it keeps their stdin, a pipe, open.

The first line of stdin is `Settings` as JSON. The scheduler prints its address.
"""

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
# Seconds: between checks for the parent's end, until a dead worker is replaced, until a worker without scheduler ends.
_LOOK, _RESTART, _NO_SCHEDULER = 1.0, 0.2, 60


@dataclass(frozen=True)
class Settings:
    """Settings of a process: the cluster's certificate and key (PEM), and a working folder.

    workers    number of workers that the scheduler starts
    scheduler  address that a worker connects to
    """

    certificate: str
    key: str
    folder: str
    workers: int = 0
    scheduler: str = ""

    def line(self) -> bytes:
        """Return these settings as the first line of stdin."""
        return f"{json.dumps(asdict(self))}\n".encode()


def security_of(certificate: str, key: str) -> Any:
    """Return TLS settings that accept only processes with this certificate."""
    from distributed.security import Security

    roles = ("client", "scheduler", "worker")
    certificates = {f"tls_{role}_cert": certificate for role in roles} | {f"tls_{role}_key": key for role in roles}
    # None: Dask's defaults instead of the user's settings.
    defaults = dict.fromkeys(("tls_ciphers", "tls_min_version", "tls_max_version"))
    return Security(require_encryption=True, tls_ca_file=certificate, **certificates, **defaults)


def main(role: str) -> None:
    """Read the settings and run until the parent process ends."""
    line = sys.stdin.readline()
    end_with_parent()
    if not line:
        return
    settings = Settings(**json.loads(line))
    forget_user_settings()
    without_http()
    asyncio.run(_scheduler(settings) if role == "scheduler" else _worker(settings))


def end_with_parent() -> None:
    """Kill this process group, with workers and their tools, when the parent process ends."""
    parent = os.getppid()
    # A stage's tools must not read the pipe.
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
    """Reset Dask's settings to its defaults; `distributed` reads some of them at import."""
    import dask.config

    dask.config.refresh(paths=[], env={})


def without_http() -> None:
    """Disable the HTTP server: it has no authentication, and Dask has no option to disable it."""
    from distributed.node import ServerNode

    ServerNode.start_http_server = lambda *_, **__: None


async def _scheduler(settings: Settings) -> None:
    from distributed import Scheduler

    security = security_of(settings.certificate, settings.key)
    async with Scheduler(host=HOST, port=0, protocol="tls", security=security, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        worker_settings = Settings(settings.certificate, settings.key, settings.folder, scheduler=scheduler.address)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(settings.workers):
                tasks.create_task(_keep_worker(worker_settings))


async def _keep_worker(settings: Settings) -> None:
    import dask.config

    environment = dask.config.get("distributed.nanny.pre-spawn-environ")
    single_threaded = {name: str(value) for name, value in environment.items()}
    # The command waits until all copies of this pipe are closed.
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
