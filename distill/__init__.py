"""Jobs alone: discover, freeze, train, evaluate, promote, serve. May use everything below it; nothing imports it."""
