"""Remote stores in buckets, s3:// and gs://: HTTP requests signed by vendors' libraries.

The libraries find credentials and sign URLs, but transfer no data: the limits of pipeline.remote.http apply.
"""

import os
import threading
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

from pipeline.remote.http import HttpTransport
from pipeline.remote.settings import RemoteSettings
from pipeline.remote.transport import Denied, RemoteError

_OPERATIONS = {"GET": "get_object", "HEAD": "head_object", "PUT": "put_object"}
# Validity of a signed URL in seconds.
_SIGNED_FOR = 3600
_GOOGLE = "https://storage.googleapis.com"
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"


class _Bucket(HttpTransport):
    """A folder of a bucket at a service's URL."""

    def __init__(self, settings: RemoteSettings, service: str, certificates: str | None = None) -> None:
        parts = urlsplit(settings.url)
        self._bucket = parts.netloc
        self._folder = parts.path.strip("/")
        self._lock = threading.Lock()
        # Buckets do not use the credentials of FIRMLINE_REMOTE_USER and so on.
        super().__init__(replace(settings, url=service, user="", password="", token=""), certificates)

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}" if self._folder else name

    def _make_folder(self, name: str) -> bool:
        # Buckets have no folders: the bucket itself is missing.
        return False


class S3Transport(_Bucket):
    """S3 and compatible services; botocore finds region, endpoint and credentials."""

    def __init__(self, settings: RemoteSettings) -> None:
        """Raises RemoteError for wrong settings."""
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        # Without a checksum of the body: it is not known when the URL is signed.
        config = Config(signature_version="s3v4", request_checksum_calculation="when_required")
        try:
            session = botocore.session.get_session()
            self._client: Any = session.create_client("s3", config=config)
        except (BotoCoreError, ValueError) as error:
            raise RemoteError(str(error)) from error
        super().__init__(settings, self._client.meta.endpoint_url, session.get_config_variable("ca_bundle"))

    def _request(self, method: str, name: str) -> tuple[str, dict[str, str]]:
        from botocore.exceptions import NoCredentialsError, PartialCredentialsError

        object_id = {"Bucket": self._bucket, "Key": self._key(name)}
        try:
            # This renews temporary credentials.
            with self._lock:
                url = self._client.generate_presigned_url(_OPERATIONS[method], object_id, _SIGNED_FOR)
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise Denied(str(error)) from error
        return url, self._headers


class GsTransport(_Bucket):
    """Google Cloud Storage, or STORAGE_EMULATOR_HOST, with credentials of its library or none."""

    def __init__(self, settings: RemoteSettings) -> None:
        """Raises RemoteError for wrong settings."""
        emulator = os.environ.get("STORAGE_EMULATOR_HOST", "")
        if emulator and "://" not in emulator:
            emulator = f"http://{emulator}"
        super().__init__(settings, emulator or _GOOGLE)
        self._is_found = bool(emulator)
        self._credentials: Any = None

    def _request(self, method: str, name: str) -> tuple[str, dict[str, str]]:
        path = f"{quote(self._bucket)}/{quote(self._key(name))}"
        return f"{self._url.rstrip('/')}/{path}", {**self._headers, **self._authorized()}

    def _authorized(self) -> dict[str, str]:
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError, RefreshError
        from google.auth.transport.urllib3 import Request

        request: Any = Request(self._pool)
        with self._lock:
            try:
                if not self._is_found:
                    self._credentials, _ = google.auth.default([_GOOGLE_SCOPE], request=request)
                    self._is_found = True
            except DefaultCredentialsError as error:
                if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
                    raise Denied(str(error).splitlines()[0]) from error
                # Public buckets need no credentials.
                self._is_found = True
            if self._credentials is None:
                return {}
            try:
                if not self._credentials.valid:
                    self._credentials.refresh(request)
            except RefreshError as error:
                raise Denied(str(error.args[0]) if error.args else "no token") from error
            return {"Authorization": f"Bearer {self._credentials.token}"}
