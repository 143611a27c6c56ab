"""What was said: the record of a call, the spool it waits in, the writer that stores it."""
