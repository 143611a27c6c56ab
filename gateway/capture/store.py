"""Owns storing a batch of calls with their bodies, tasks and charges. Must not commit: the cursor moves with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

import msgspec
from sqlalchemy.orm import Session

from gateway.billing import repository as ledger
from gateway.billing.service import PriceBook, entry
from gateway.capture import repository
from gateway.capture.blobs import digest_of
from gateway.capture.dictionaries import Dictionaries
from gateway.capture.ingest import Parsed
from gateway.capture.partitions import month_of
from gateway.capture.recognise import Recogniser
from gateway.capture.threads import Parent, Threads
from gateway.models import Price


class Store:
    """Stores batches, and remembers between them what makes the next one cheaper. `forget` after one that failed."""

    def __init__(self) -> None:
        self._dictionaries = Dictionaries()
        self._threads = Threads()

    def forget(self) -> None:
        """Drops what may not have been stored."""
        self._dictionaries.forget()
        self._threads.forget()

    def add(self, session: Session, batch: Sequence[Parsed]) -> None:
        """Adds the batch to the session's transaction."""
        if not batch:
            return
        repository.ensure_partitions(session, {month_of(p.envelope.id) for p in batch})
        _charge(session, batch)
        kept = [p for p in batch if p.envelope.capture != "off"]
        projects = sorted({p.envelope.project_id for p in kept})
        repository.keep_bodies(session, projects)
        recogniser = Recogniser(session, kept)
        recogniser.assign()
        self._go_on(session, kept)
        for project_id in projects:
            self._bodies(session, project_id, [p for p in kept if p.envelope.project_id == project_id])
        repository.insert_calls(session, [p.values for p in kept])
        recogniser.suggest()
        for project_id, count in Counter(p.envelope.project_id for p in kept).items():
            payload = {"project_id": str(project_id), "calls": count}
            repository.notify(session, msgspec.json.encode(payload).decode())

    def _go_on(self, session: Session, kept: Sequence[Parsed]) -> None:
        """Gives each call that has bodies its parent, and takes from its bodies what the parent has."""
        here, parents = set[UUID](), dict[UUID, Parent]()
        for parsed in kept:
            if parsed.values["request"] is None:
                continue
            id, project_id = parsed.envelope.id, parsed.envelope.project_id
            parent = self._threads.parent(project_id, parsed.items)
            if parent is not None:
                parents[id] = parent
            answer = digest_of(parsed.message) if parsed.message is not None else None
            self._threads.remember(project_id, id, parsed.items, answer)
            here.add(id)
        there = here | repository.existing(session, {parent.call_id for parent in parents.values()} - here)
        for parsed in kept:
            if parsed.values["request"] is None:
                continue
            parent = parents.get(parsed.envelope.id)
            if parent is not None and parent.call_id in there:
                parsed.values |= {"parent_id": parent.call_id, "shared": parent.shared}
                own = parsed.items[parent.shared :]
                for digest in set(parsed.items[: parent.shared]) - set(own):
                    parsed.blobs.bodies.pop(digest, None)
            else:
                own = parsed.items
            parsed.values["items"] = b"".join(own)

    def _bodies(self, session: Session, project_id: UUID, calls: Sequence[Parsed]) -> None:
        """Compresses answers into their rows, and adds the bodies that are not stored yet."""
        bodies = {digest: body for p in calls for digest, body in p.blobs.bodies.items()}
        answers = [p for p in calls if p.answer is not None]
        samples = [*bodies.values(), *(p.answer for p in answers if p.answer is not None)]
        codec = self._dictionaries.codec(session, project_id, samples)
        for parsed in answers:
            assert parsed.answer is not None
            parsed.values["response"] = codec.compress(parsed.answer)
        repository.insert_blobs(session, project_id, {digest: codec.compress(body) for digest, body in bodies.items()})


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
    ledger.copy_entries(session, entries)


def _price(book: PriceBook, parsed: Parsed) -> Price | None:
    envelope = parsed.envelope
    models = (parsed.model, envelope.upstream_model, envelope.alias)
    return book.in_force(envelope.student_id or envelope.upstream_id, models, parsed.values["received_at"])
