/* What sketches of package=arduino use of the library Arduino_OV767X. */
#pragma once

enum { QCIF, RGB565, GRAYSCALE };

struct OV767X {
    int begin(int resolution, int format, int fps);
    void readFrame(void *buffer);
};
extern OV767X Camera;
