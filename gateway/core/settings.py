"""Owns every setting of Stepdown, read once from the environment. Must not open connections."""

from __future__ import annotations

import secrets
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from gateway.core.errors import StepdownError


class Settings(BaseSettings):
    """Every setting, with its environment variable `STEPDOWN_<NAME>` (or the alias given)."""

    model_config = SettingsConfigDict(env_prefix="STEPDOWN_", extra="ignore", populate_by_name=True)

    home: Path = Field(Path(".stepdown"), description="Folder for the database, spool, models, logs and secrets.")
    host: str = Field("127.0.0.1", description="Address the gateway binds to. Loopback unless you say otherwise.")
    port: int = Field(8787, ge=1, le=65535, description="Port of the gateway, the API and the dashboard.")
    workers: int = Field(1, ge=1, le=64, description="Gateway processes of `stepdown up`, all on the one port.")
    grace_s: int = Field(
        30, ge=0, description="Seconds in which answers under way may end when the gateway is told to stop."
    )
    allowed_hosts: str = Field(
        "",
        description="Further host names, separated by commas, under which the dashboard and its API may be opened.",
    )
    database_url: str | None = Field(
        None,
        validation_alias=AliasChoices("DATABASE_URL", "STEPDOWN_DATABASE_URL", "database_url"),
        description="Your own PostgreSQL ≥ 15. Unset: the embedded one under STEPDOWN_HOME.",
    )
    redis_url: str | None = Field(
        None,
        validation_alias=AliasChoices("REDIS_URL", "STEPDOWN_REDIS_URL", "redis_url"),
        description="Your own Valkey or Redis. Unset: the embedded one under STEPDOWN_HOME.",
    )
    master_key_file: Path | None = Field(
        None,
        description="File with the key that encrypts upstream credentials. Default: STEPDOWN_HOME/secrets/master.key.",
    )
    connect_timeout_s: float = Field(
        10.0, description="Seconds until there is a connection to an upstream: name, socket and TLS, or a free one."
    )
    first_byte_timeout_s: float = Field(120.0, description="Seconds to wait for an upstream's first byte.")
    idle_timeout_s: float = Field(120.0, description="Seconds between two pieces of an upstream's answer.")
    total_timeout_s: float = Field(
        3600.0, description="Seconds a call may take from its last request byte to its last answer byte, all told."
    )
    upstream_connections: int = Field(
        0, ge=0, description="Most connections to one upstream's host from each gateway process; 0: any number."
    )
    student_timeout_s: float = Field(
        20.0, description="Seconds a student may take to its first byte before the upstream answers instead."
    )
    max_body_mb: int = Field(100, description="Largest request body accepted, in MB (10^6 bytes); beyond it, 413.")
    capture: bool = Field(True, description="Whether calls are captured at all.")
    hangup: Literal["abort", "drain"] = Field(
        "abort", description="When a client hangs up: `abort` the upstream call or `drain` it to the end."
    )
    route_refresh_s: float = Field(0.5, description="Seconds between looks for changed keys and routes.")
    base_model: str = Field(
        "smollm2-135m-instruct", description="Folder under STEPDOWN_HOME/models that students start from."
    )
    engine_rate_usd_hour: str = Field(
        "0.10", description="Assumed price of one hour of the serving machine, for a student's cost."
    )
    vllm_threads: int = Field(0, description="CPU threads for vLLM; 0 means every core.")
    sampler: Literal["vllm", "local"] = Field(
        "vllm",
        description="What samples during training: `vllm`, an engine of its own, or `local`, the trainer itself: slow.",
    )
    lease_s: float = Field(30.0, description="Seconds a run's lease lasts without a heartbeat.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="debug, info, warning or error."
    )
    log_format: Literal["text", "json"] = Field("text", description="`text`, or `json`: an object a line.")

    @cached_property
    def root(self) -> Path:
        """STEPDOWN_HOME as an absolute path."""
        return self.home.expanduser().resolve()

    @property
    def spool_dir(self) -> Path:
        return self.root / "spool"

    @property
    def run_dir(self) -> Path:
        return self.root / "run"

    @property
    def models_dir(self) -> Path:
        return self.root / "models"

    @property
    def runs_dir(self) -> Path:
        return self.root / "runs"

    @property
    def logs_dir(self) -> Path:
        return self.root / "logs"

    @property
    def secrets_dir(self) -> Path:
        return self.root / "secrets"

    @property
    def base_model_dir(self) -> Path:
        return self.models_dir / self.base_model


@lru_cache
def settings() -> Settings:
    """The process's settings. Raises StepdownError that names the variable. Tests clear the cache with
    `settings.cache_clear()`."""
    try:
        return Settings()  # type: ignore[call-arg]  # every field has a default; pydantic's plugin is not loaded
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        variable = name if name.isupper() else f"STEPDOWN_{name.upper()}"
        raise StepdownError(
            500,
            "setting_invalid",
            f"{variable}={first['input']!r}: {first['msg']}.",
            hint=f"Correct it, or unset {variable} for its default.",
        ) from None


def read_or_create_secret(path: Path, length: int = 32) -> str:
    """Returns the secret in `path`, writing a new one (mode 0600, URL-safe text) when there is none."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        secret = secrets.token_urlsafe(length)
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        temporary.touch(mode=0o600)
        temporary.write_text(secret)
        try:
            # A hard link is the atomic "create if absent": two processes starting together agree on one secret.
            path.hardlink_to(temporary)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
        return path.read_text().strip()
