"""Loops over channels (Pex): the search for those with the least peak."""
