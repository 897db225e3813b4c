"""Files, the store of measured rows, checks of arguments, and processes: what every room may use."""
