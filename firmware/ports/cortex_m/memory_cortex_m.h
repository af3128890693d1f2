/* Where things are: link.ld places them, the build gives the board's figures (pipeline/targets/
 * cortex_m.py). From the lowest address of RAM up: the stack, growing down towards it, then all
 * statics. A stack too deep thus leaves the RAM, which the memory protection unit notices.
 *
 * The network's constants and its arena may lie in memories outside of the chip.
 *
 * The desk is memory that the board does not have: buffers of the simulated line, a fault's stack. */
#ifndef THIMBLE_MEMORY_CORTEX_M_H
#define THIMBLE_MEMORY_CORTEX_M_H

#include <stdint.h>

#define PORT_PAINT 0xC5C5C5C5u
#define PORT_ON_DESK __attribute__((section(".desk")))

/* Addresses, and numbers in place of addresses. */
extern uint8_t port_flash_start[], port_flash_bytes[], port_ram_start[], port_ram_bytes[];
extern uint8_t port_stack_top[], port_desk_start[], port_desk_bytes[];
extern uint32_t port_data_from[], port_data_start[], port_data_end[];
extern uint32_t port_bss_start[], port_bss_end[];
/* Memories outside of the chip: 0 bytes where the firmware has nothing there; weak, or the compiler takes
 * it that an address is not 0. */
extern uint8_t port_weights_start[], port_activations_start[];
__attribute__((weak)) extern uint8_t port_weights_bytes[], port_activations_bytes[];
extern uint8_t port_arena_start[], port_arena_end[];

#define PORT_REGISTER(address) (*(volatile uint32_t *)(address))

enum port_region { PORT_FLASH, PORT_DESK, PORT_TIMER_PAGE, PORT_OTHERS };

/* Grants the flash to read and execute, the desk, the timer, the memories outside of the chip that the
 * firmware uses and the board's RAM, nothing else.
 * ARMv7-M, ARMv8-M: the core's system registers need no grant. In a fault handler nothing is
 * protected. */
void port_protect(void);

/* Takes the desk and the timer away, gives them back. */
void port_close_desk(void);
void port_open_desk(void);

#endif
