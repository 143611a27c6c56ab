"""The data plane: OpenAI's /v1 as raw ASGI, relayed to an upstream or answered by a student."""
