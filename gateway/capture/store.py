"""Owns storing a batch of calls with their bodies, tasks and charges. Must not commit: the cursor moves with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

import msgspec
from sqlalchemy.orm import Session

from gateway.billing import repository as ledger
from gateway.billing.service import PriceBook, entry
from gateway.capture import repository
from gateway.capture.ingest import Parsed
from gateway.capture.partitions import month_of
from gateway.capture.recognise import Recogniser
from gateway.models import Price


def store(session: Session, batch: Sequence[Parsed]) -> None:
    """Adds the batch to the session's transaction."""
    if not batch:
        return
    repository.ensure_partitions(session, {month_of(p.envelope.id) for p in batch})
    _charge(session, batch)
    kept = [p for p in batch if p.envelope.capture != "off"]
    recogniser = Recogniser(session, kept)
    recogniser.assign()
    bodies = {(p.envelope.project_id, h): body for p in kept for h, body in p.blobs.bodies.items()}
    repository.insert_blobs(session, bodies)
    repository.insert_calls(session, [p.values for p in kept])
    recogniser.suggest()
    for project_id, count in Counter(p.envelope.project_id for p in kept).items():
        payload = {"project_id": str(project_id), "calls": count}
        repository.notify(session, msgspec.json.encode(payload).decode())


def _charge(session: Session, batch: Sequence[Parsed]) -> None:
    """Sets each call's cost and adds its charge. No reported usage or no known price: no cost, rather than a guess."""
    upstreams = {p.envelope.upstream_id for p in batch if p.envelope.upstream_id is not None}
    students = {p.envelope.student_id for p in batch if p.envelope.student_id is not None}
    book = PriceBook(ledger.prices(session, upstreams, students))
    entries = []
    for parsed in batch:
        price = _price(book, parsed)
        if parsed.usage is None or price is None:
            continue
        envelope = parsed.envelope
        charge = entry(
            project_id=envelope.project_id,
            source_id=envelope.id,
            kind="call",
            usage=parsed.usage,
            price=price,
            call_id=envelope.id if envelope.capture != "off" else None,
        )
        parsed.values["cost"] = Decimal(charge["amount"])
        entries.append(charge)
    ledger.add_entries(session, entries)


def _price(book: PriceBook, parsed: Parsed) -> Price | None:
    envelope = parsed.envelope
    models = (parsed.model, envelope.upstream_model, envelope.alias)
    return book.in_force(envelope.student_id or envelope.upstream_id, models, parsed.values["received_at"])
