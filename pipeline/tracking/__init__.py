"""MLflow, kept out of the way: runs are spooled as files, a process of its own logs them.

Importing MLflow takes seconds, and creating its database from several processes at once fails.
Here one process at a time, under a lock, empties the spool; a run whose tracking was killed is
logged by the next one.
"""
