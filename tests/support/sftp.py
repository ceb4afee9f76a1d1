"""An SFTP server for tests, by paramiko: one user, one password, the files below a folder under their own paths."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paramiko

USER, PASSWORD = "ann", "s@cret"


class _Who(paramiko.ServerInterface):  # type: ignore[misc]
    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        self._asked.append(password)
        right = (username, password) == (USER, PASSWORD)
        return int(paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)


class _Files(paramiko.SFTPServerInterface):  # type: ignore[misc]
    def _done(self, function: Any, *values: Any) -> Any:
        try:
            found = function(*values)
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)
        return paramiko.SFTP_OK if found is None else found

    def stat(self, path: str) -> Any:
        return self._done(lambda: paramiko.SFTPAttributes.from_stat(Path(path).stat()))

    lstat = stat

    def open(self, path: str, flags: int, attr: Any) -> Any:
        def opened() -> paramiko.SFTPHandle:
            handle = paramiko.SFTPHandle(flags)
            stream = os.fdopen(os.open(path, flags, 0o644), "r+b" if flags & (os.O_WRONLY | os.O_RDWR) else "rb")
            handle.readfile = handle.writefile = stream
            return handle

        # What is only written is opened for both, as Python has no file that is written and not cut.
        flags = flags & ~os.O_WRONLY | os.O_RDWR if flags & os.O_WRONLY else flags
        return self._done(opened)

    def mkdir(self, path: str, attr: Any) -> Any:
        return self._done(os.mkdir, path)

    def remove(self, path: str) -> Any:
        return self._done(os.remove, path)

    def rename(self, oldpath: str, newpath: str) -> Any:
        return self._done(os.rename, oldpath, newpath)

    posix_rename = rename


@contextmanager
def sftp_server(folder: Path, key: paramiko.PKey, asked: list[str]) -> Iterator[str]:
    """Where the server is, as `name:port`; `asked` gets the passwords that it is told."""
    folder.mkdir(parents=True, exist_ok=True)
    transports: list[paramiko.Transport] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Files)
            transports.append(transport)
            try:
                transport.start_server(server=_Who(asked))
            except (paramiko.SSHException, EOFError, OSError):
                transport.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for one in transports:
                one.close()
