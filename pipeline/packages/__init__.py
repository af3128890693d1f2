"""Stage package: a network as a library for what people build their firmware with."""
