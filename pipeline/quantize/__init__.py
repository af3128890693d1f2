"""From real parameters to the integer graph."""
