"""Writers of the kernels in `kernels/avr`: windows over bytes in assembly."""
