"""Owns the declarative base and the column kinds that every table shares."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from sqlalchemy import ForeignKey, MetaData, Numeric
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, mapped_column

from gateway.core.clock import now
from gateway.core.ids import new_id


class Base(DeclarativeBase):
    """Base of all tables, with names for constraints so that migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {
        dict[str, Any]: JSONB,
        list[Any]: JSONB,
        datetime: TIMESTAMP(timezone=True),
        # Ten decimals hold the price of one token at a hundredth of a cent per million.
        Decimal: Numeric(20, 10),
    }


Id = Annotated[uuid.UUID, mapped_column(primary_key=True, default=new_id)]
ProjectId = Annotated[uuid.UUID, mapped_column(ForeignKey("project.id", ondelete="CASCADE"), index=True)]
CreatedAt = Annotated[datetime, mapped_column(default=now)]
