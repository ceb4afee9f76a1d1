"""Which schedulers are reached, and how: TLS, or plain TCP on this machine alone."""

from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs the group dask: ./bootstrap --with dask")

import dask.config
from distributed.security import Security

from pipeline.distributed.choice import executor_of
from pipeline.distributed.connection import PLAIN_TCP, connection_to
from pipeline.errors import PipelineError, RecipeError

_LOOPBACK = ["127.0.0.1", "127.8.9.1", "[::1]", "localhost", "LocalHost"]
_ELSEWHERE = ["scheduler", "192.168.1.5", "[fe80::1]", "[::]", "0.0.0.0", "127.evil.example", "localhost.evil.example"]


@pytest.mark.parametrize("scheme", ["dask", "tcp"])
def test_plain_tcp_is_for_this_machine(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in _LOOPBACK:
        assert connection_to(f"{scheme}://{host}:8786").address == f"tcp://{host}:8786"
    for host in _ELSEWHERE:
        for word in ("", "0", "false"):
            monkeypatch.setenv(PLAIN_TCP, word)
            with pytest.raises(PipelineError, match=f"run code on the workers\nuse TLS .*{PLAIN_TCP}=1 allows"):
                connection_to(f"{scheme}://{host}:8786")
        monkeypatch.setenv(PLAIN_TCP, "1")
        assert connection_to(f"{scheme}://{host}:8786").address == f"tcp://{host}:8786"
    monkeypatch.setenv(PLAIN_TCP, "maybe")
    with pytest.raises(RecipeError, match=f"{PLAIN_TCP}=maybe: expected 1, true, 0 or false"):
        connection_to(f"{scheme}://scheduler:8786")


def test_tls_needs_certificates_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="tls://scheduler:8786: Dask's settings name no TLS certificates"):
        connection_to("tls://scheduler:8786")
    certificates, file = Security.temporary(), tmp_path / "own.pem"
    settings = {
        "distributed.comm.tls.ca-file": str(file),
        "distributed.comm.tls.client": {"cert": str(file), "key": str(file)},
    }
    with dask.config.set(settings):
        for broken in (None, "no certificate"):
            if broken is not None:
                file.write_text(broken)
            with pytest.raises(PipelineError, match="Dask's TLS settings cannot be used: "):
                connection_to("tls://scheduler:8786")
        file.write_text(certificates.tls_client_key + certificates.tls_client_cert)
        # Whoever has certificates is never taken to plain TCP, unless that is what is written.
        for scheme in ("tls", "dask"):
            assert connection_to(f"{scheme}://scheduler:8786").address == "tls://scheduler:8786"
        with pytest.raises(PipelineError, match="refused"):
            connection_to("tcp://scheduler:8786")


_OTHER_FORMS = ["dask://somewhere", "dask://a:0", "dask://a:65536", "dask://u@a:1", "dask://a:1/x", "dask://a:\uff11"]
_OTHER_FORMS += ["dask://é:1", "dask://a b:1", "dask://a:1\n", "inproc://a:1", "local ", ""]


@pytest.mark.parametrize("text", _OTHER_FORMS)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(RecipeError, match="expected local, dask or tls://HOST:PORT"):
        executor_of(text)
