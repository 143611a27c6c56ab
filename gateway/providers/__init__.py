"""The only callers of litellm and of the openai client: chat with a provider's model as teacher or judge."""

from gateway.providers.chat import chat_model
from gateway.providers.spec import ChatModel, ChatResult, Prices, UpstreamSpec, Usage

__all__ = ["ChatModel", "ChatResult", "Prices", "UpstreamSpec", "Usage", "chat_model"]
