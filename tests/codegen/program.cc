#include "model.h"
#include "model.h" // the same one again
#include <cstdio>
static const char *const labels[] = {NN_LABELS};
static const int shape[] = {NN_INPUT_SHAPE};
int main() {
    static_assert(sizeof(nn_output_t) == 2, "what it says");
    uint8_t image[NN_INPUT_BYTES];
    if (fread(image, 1, sizeof image, stdin) != sizeof image || shape[0] != 12) return 1;
    nn_init();
    nn_feed(image, sizeof image);
    if (nn_invoke() != NN_OK) return 2;
    const double real = nn_dequantize(nn_output()[nn_best()]);
    printf("%s %g %d", labels[nn_best()], real, nn_quantize(1e9f));
    return 0;
}
