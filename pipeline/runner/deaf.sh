#!/bin/sh
# The shell that DVC starts stages with. A terminal sends Ctrl-C to all processes of a command: they
# and what they start leave it to run.py, which ends them. Else each would print a trace of its own.
trap '' INT
exec /bin/sh "$@"
