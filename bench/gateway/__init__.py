"""`make bench-gateway`: our relay beside other gateways, one mock upstream behind all of them."""
