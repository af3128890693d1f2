/* Numbers of commands, the same on every bus (SD specifications, part 1, 4.7.4 and 7.3.1.3); ACMD41 follows APPLICATION. */
#ifndef THIMBLE_SD_COMMANDS_H
#define THIMBLE_SD_COMMANDS_H

enum {
    GO_IDLE = 0,
    ALL_SEND_CID = 2,
    SEND_ADDRESS = 3,
    BUS_WIDTH = 6,
    SELECT = 7,
    SEND_IF_COND = 8,
    SEND_CSD = 9,
    STOP_TRANSMISSION = 12,
    SEND_STATUS = 13,
    SET_BLOCKLEN = 16,
    READ_SINGLE = 17,
    READ_MULTIPLE = 18,
    WRITE_SINGLE = 24,
    WRITE_MULTIPLE = 25,
    APPLICATION_OP_COND = 41,
    APPLICATION = 55,
    READ_OCR = 58,
    CRC_ON_OFF = 59
};
#define VOLTAGE_AND_PATTERN 0x1AAul /* of SEND_IF_COND */
#define HIGH_CAPACITY (1ul << 30)   /* of APPLICATION_OP_COND and of the OCR */

#endif
