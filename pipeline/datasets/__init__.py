"""Labelled image sets: one set is one file here, one YAML in ``conf/data`` and one test."""
