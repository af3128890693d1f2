static void tried(uint8_t byte) {
    static uint8_t saved[NN_SAVED_BYTES], other[NN_SAVED_BYTES];
    uint8_t wrong = nn_state(saved) != NN_OK;
    feed(&byte, 1);
    wrong |= nn_state(other) != NN_INCOMPLETE;
    nn_reset(); /* in the middle of a frame */
    memcpy(other, saved, sizeof saved);
    other[3] ^= 1; /* of other firmware */
    wrong |= nn_restore(other) != NN_CORRUPT || memcmp(other + 8, saved + 8, NN_STATE_BYTES);
    if (!wrong) nn_restore(saved); /* else state is what it was initially */
}
