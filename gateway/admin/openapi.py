"""Owns the OpenAPI document of the admin API, made without a database.

`python -m gateway.admin.openapi > web/openapi.json` writes what the dashboard's client is generated from.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from gateway.admin.router import router


@cache
def document() -> dict[str, Any]:
    """The admin API as an OpenAPI 3.1 document."""
    app = FastAPI(title="Stepdown admin API", version=version("stepdown"))
    app.include_router(router)
    return app.openapi()


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")
