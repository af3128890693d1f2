"""``python -m pipeline.tracking``: log every spooled run, then end."""

from pipeline.tracking.spool import drain

drain()
