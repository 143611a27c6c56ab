"""Examples take as long as they take: the tests say what comes out, not how fast on a busy machine."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
