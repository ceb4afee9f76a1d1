"""CMSIS-Pack: a package description and the .pack archive."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

from stages.delivery.export.content import Content
from stages.delivery.export.form import Files, Form, cortex_m_only

VENDOR = "Firmline"
_OLDEST = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can have
_CORES = {
    **{f"cortex-m{number}": f"Cortex-M{number}" for number in (0, 3, 4, 7, 23, 33, 35, 52, 55, 85)},
    "cortex-m0plus": "Cortex-M0+",
}


def _facts(content: Content) -> Mapping[str, Any]:
    return {
        "vendor": VENDOR,
        "dcore": _CORES.get(content.target.core, ""),
        "others": sorted(path for path in content.sources if path.endswith(".h")),
    }


def _packed(files: Files, content: Content) -> Files:
    """Add the archive. Equal files give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(files.items()):
            entry = zipfile.ZipInfo(path, _OLDEST)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, 0o644 << 16, 3
            archive.writestr(entry, data)
    return files | {f"{VENDOR}.{content.name}.{content.version}.pack": buffer.getvalue()}


FORM = Form(
    __file__,
    "a CMSIS-Pack: a description (.pdsc) and the archive (.pack)",
    {
        "Firmline.{name}.pdsc": "pack.pdsc.j2",
        "example/main.c": "shared/main.c.j2",
        "example/test_data.h": "shared/test_data.h.j2",
    },
    why_not=cortex_m_only,
    facts=_facts,
    finish=_packed,
    several=True,
    run="cpackget add Firmline.{{ name }}.*.pack",
)
