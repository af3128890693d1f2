/* What sketches of package=arduino use of the library PDM. */
#pragma once

#include <stddef.h>

struct Microphone {
    int begin(int channels, int rate_hz);
    int read(void *buffer, size_t bytes);
    void onReceive(void (*arrived)(void));
};
extern Microphone PDM;
