"""A cluster of this machine: where it listens, who gets in, and that it ends with its command."""

import contextlib
import ipaddress
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stages.support.system.installation import INSTALLATION
from stages.support.system.scratch import clear_abandoned
from tests.support.processes import wait_until

pytest.importorskip("distributed", reason="needs the group dask: ./bootstrap --with dask")

from distributed.security import Security

# The second measurement starts a program that outlives all of this, unless it is killed.
_COMMAND = """
import time
from pipeline.distributed.dask_executor import DaskExecutor
from pipeline.process.interruption import interruptible
from pipeline.process.signals import receive_signals

def work():
    executor = DaskExecutor(processes=2)
    assert executor.max_parallel == 4
    begin = executor.remote_calls({})
    print(begin("json:dumps", ([1],))(), flush=True)
    waiting = begin("os:system", ("echo > began; sleep 600",))
    time.sleep(600)

receive_signals()
interruptible(work)
"""
# Everything of Dask's that opens a port, leaves TLS out, or runs code of the user's.
_SETTINGS = """
distributed:
  scheduler:
    preload: [PRELOAD]
    contact-address: "tcp://192.0.2.1:8786"
    http: {routes: [distributed.http.scheduler.info]}
  worker: {preload: [PRELOAD]}
  nanny: {preload: [PRELOAD]}
  comm: {default-scheme: tcp, require-encryption: false, tls: {max-version: 1.2, ciphers: NULL}}
  dashboard: {link: "http://{host}:{port}/"}
"""
_PRELOAD = "import socket\nopened = socket.create_server(('', 0))\n"


@contextmanager
def _command(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command with a cluster whose workers are at work; hostile settings lie around."""
    (folder / "preload.py").write_text(_PRELOAD)
    settings = folder / ".config/dask/settings.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(_SETTINGS.replace("PRELOAD", str(folder / "preload.py")))
    # Modules of a project with the names of Firmline's and Dask's are not those.
    for name in ("pipeline", "distributed", "dask"):
        (folder / f"{name}.py").write_text("raise SystemExit(3)\n")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": str(INSTALLATION),
        "DASK_DISTRIBUTED__WORKER__PRELOAD": f"[{str(folder / 'preload.py')!r}]",
        "DASK_DISTRIBUTED__SCHEDULER__PRELOAD": f"[{str(folder / 'preload.py')!r}]",
        "DASK_SCHEDULER_ADDRESS": "tcp://192.0.2.1:8786",
    }
    command = [sys.executable, "-P", "-c", _COMMAND]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as started:  # type: ignore[call-overload]
        try:
            assert started.stdout.readline() == b"[1]\n", started.stderr.read()
            wait_until(lambda: (folder / "began").exists())
            yield started
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


def test_a_local_cluster_listens_on_loopback_and_ends_when_its_command_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _command(tmp_path) as started:
        processes = _processes(tmp_path)
        sockets = _listening(processes)
        # A scheduler and two workers: no HTTP server, and nothing of what the user's settings would open.
        assert len(sockets) == 3 and all(address.is_loopback for address, _ in sockets), sockets
        for _, port in sockets:
            _assert_refuses_strangers(port)
        started.kill()
        started.wait()
        wait_until(lambda: not _processes(tmp_path))
    assert len(processes) >= 5, "the command, the scheduler, two workers, and what one of them started"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    clear_abandoned()
    assert [*tmp_path.glob("firmline-*")] == []


def _processes(folder: Path) -> list[int]:
    """Those that have the folder as their HOME, and have not ended."""
    processes = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"\0HOME={folder}\0".encode() in b"\0" + (place / "environ").read_bytes():
                processes.append(int(place.name))
    return processes


def _listening(processes: list[int]) -> list[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]]:
    """Address and port of each socket of these processes to which others can connect or send."""
    links = [str(link.readlink()) for process in processes for link in Path(f"/proc/{process}/fd").iterdir()]
    inodes = {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:")}
    addresses = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, remote, _, *_, inode = line.split()[:10]
            if inode in inodes and remote.endswith(":0000"):
                address, port = local.split(":")
                words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
                addresses.append((ipaddress.ip_address(b"".join(words)), int(port, 16)))
    return addresses


def _assert_refuses_strangers(port: int) -> None:
    """Another user of this machine has no certificate, or another."""
    for role in ("none", "other"):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if role == "other":
            context = Security.temporary().get_connection_args("client")["ssl_context"]
            context.verify_mode = ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            pytest.raises(ssl.SSLError),
            context.wrap_socket(plain) as secure,
        ):
            secure.recv(1)
