"""`python -m distill.artifacts`: make the base model under STEPDOWN_HOME if it is not there yet."""

import sys

from distill.artifacts.base import ArtifactError, ensure_base_model
from gateway.core.settings import settings


def main() -> int:
    try:
        ensure_base_model(settings().root, lambda line: print(line, flush=True))
    except ArtifactError as error:
        print(f"base model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
