"""How much storing costs, and whether anything is lost: `python -m bench.capture`."""
