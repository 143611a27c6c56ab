"""One parent process that starts everything, restarts what dies and stops it all. Must hold no business rule."""
