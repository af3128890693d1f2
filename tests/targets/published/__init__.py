"""Programs whose time and energy are published, on the simulated cores (``__main__``)."""
