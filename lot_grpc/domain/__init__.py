"""Words and rules: no I/O, no clock, no library but the standard one."""
