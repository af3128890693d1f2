"""Tiles swapped between SRAM and a card (SwapNN, Miao and Lin 2021), and better schedules."""
