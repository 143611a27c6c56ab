"""Who answers a call: the snapshot of keys, upstreams, routes and students, and the policy over it."""
