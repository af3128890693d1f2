"""The one picture of a network that every search asks, at the grain that it works at."""
