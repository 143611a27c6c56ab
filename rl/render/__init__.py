"""The one renderer that SFT, rollouts and serving share (law 4): messages and tools become tokens and a mask."""

from rl.render.renderer import Renderer
from rl.render.shown import Message, RenderError

__all__ = ["Message", "RenderError", "Renderer"]
