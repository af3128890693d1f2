"""Portable C: any form of any operator, in elements of whole bytes."""

from pipeline.kernels.int8.costs import COSTS, PRODUCT_CYCLES, counted, word
from pipeline.kernels.int8.looked_up import LookedUpAdd, tables
from pipeline.kernels.int8.portable import Portable

__all__ = ["COSTS", "PRODUCT_CYCLES", "LookedUpAdd", "Portable", "counted", "tables", "word"]
