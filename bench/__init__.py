"""Side-by-side measurements. Nothing here is a test: what is slow on a busy machine is not wrong."""
