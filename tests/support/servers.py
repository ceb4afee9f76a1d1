"""Real servers for remote stores, each in a folder or bucket of its own, on a port of its own."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

_NGINX = """\
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; {user}
events {{}}
http {{
  access_log {folder}/access.log; client_max_body_size 0;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ root {folder}/data; dav_methods PUT; create_full_put_path on; {more} }}
  }}
}}
"""
_DAV = """
import sys
from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp
folder, port, user, password = sys.argv[1:]
users = {user: {"password": password}} if user else True
app = WsgiDAVApp({
    "provider_mapping": {"/": folder}, "simple_dc": {"user_mapping": {"*": users}}, "logging": {"enable": False},
    "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False}, "verbose": 0,
})
wsgi.Server(("127.0.0.1", int(port)), app).start()
"""
_S3 = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", int(sys.argv[1]), verbose=False)
server.start()
sys.stdin.read()
"""


def free_port() -> int:
    """A port that nothing listens on just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def nginx(folder: Path, more: str = "", port: int = 0) -> Iterator[str]:
    """The URL of Debian's nginx, which takes PUT into `folder`/data; `more` is put into its location."""
    port = port or free_port()
    (folder / "data").mkdir(parents=True, exist_ok=True)
    user = "user root;" if os.getuid() == 0 else ""
    (folder / "nginx.conf").write_text(_NGINX.format(folder=folder, port=port, user=user, more=more))
    assert NGINX is not None
    with _running([NGINX, "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def webdav(folder: Path, user: str = "", password: str = "") -> Iterator[str]:
    """The URL of WsgiDAV on `folder`, which makes no folders by itself."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    with _running([sys.executable, "-c", _DAV, str(folder), str(port), user, password], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def s3() -> Iterator[str]:
    """The URL of moto's S3."""
    port = free_port()
    with _running([sys.executable, "-c", _S3, str(port)], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    """A server, from when it takes connections on."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline, f"{command[0]} does not start"
                time.sleep(0.05)
        yield
    finally:
        server.terminate()
        server.communicate(timeout=10)
