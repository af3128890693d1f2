"""Kernels that make one row of an image, from rows that lie anywhere: channels last, or in blocks
of pixels, channel by channel, so that a word is four pixels of one channel."""

from __future__ import annotations
