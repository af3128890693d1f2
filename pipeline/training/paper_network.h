/* A network over a row of parameters: where everything lies, what the parameters are on their
 * grids, and gradients on their way back from there.
 */
#include <math.h>
#include <stdlib.h>

#include "paper_vectors.h"

enum { FLOAT, QUANTIZED, FROZEN };
enum { WEIGHT_BITS = 3, BIAS_BITS = 7, OUT_BITS = 4 }; /* of the fraction of a threshold */

static const int channels[LAYERS + 1] = {CHANNELS};
#define SIDE(layer) (SIZE - (layer) * (K - 1)) /* of the input of a convolution */
#define POOLED (SIDE(LAYERS) / 2)
#define FEATURES(c) (POOLED * POOLED * (c))

typedef struct { /* one layer of the chain, the dense one last */
    int in, out, taps, side; /* channels, channels, weights an output, side of its output */
    float *weight, *bias, *threshold;       /* rows of the parameters */
    float *weight_grad, *bias_grad, *threshold_grad;
    float *packed; /* (tap, out), quantized */
    float *rounded_bias;
    int weight_exp, bias_exp, out_exp, bias_free, out_free;
    v *sums;       /* (tap, out): weight gradients, lane by lane */
    v *bias_sums, *before, *after, *grad; /* (position, out) */
    v out_sum;
} layer_t;

typedef struct {
    layer_t layers[LAYERS + 1];
    v *image, *pool, *pool_grad, *logits;
    int mode;
    void *memory;
} net_t;

int parameter_count(void) {
    int total = 3 * LAYERS + 2;
    for (int i = 0; i < LAYERS; i++) total += channels[i + 1] * (channels[i] * K * K + 1);
    return total + CLASSES * (FEATURES(channels[LAYERS]) + 1);
}

/* ---- a network over a row of parameters ---- */

static v *take(char **free_bytes, size_t vectors) {
    v *taken = (v *)*free_bytes;
    *free_bytes += vectors * sizeof(v);
    return taken;
}

static int make(net_t *net, float *row, float *grad, int mode) {
    size_t vectors = SIZE * SIZE * channels[0] + 2 * FEATURES(channels[LAYERS]);
    for (int i = 0; i <= LAYERS; i++) {
        layer_t *l = &net->layers[i];
        l->in = channels[i];
        l->out = i == LAYERS ? CLASSES : channels[i + 1];
        l->taps = i == LAYERS ? FEATURES(l->in) : K * K * l->in;
        l->side = i == LAYERS ? 1 : SIDE(i + 1);
        vectors += 2 * l->taps * l->out + 4 * l->out + 3 * l->side * l->side * l->out;
    }
    if (posix_memalign(&net->memory, sizeof(v), vectors * sizeof(v))) return 0;
    memset(net->memory, 0, vectors * sizeof(v));
    char *at = net->memory;
    net->mode = mode;
    net->image = take(&at, SIZE * SIZE * channels[0]);
    net->pool = take(&at, FEATURES(channels[LAYERS]));
    net->pool_grad = take(&at, FEATURES(channels[LAYERS]));
    long offset = 0;
    for (int i = 0; i <= LAYERS; i++) {
        layer_t *l = &net->layers[i];
        l->sums = take(&at, l->taps * l->out);
        l->packed = (float *)take(&at, (l->taps * l->out + LANES - 1) / LANES);
        l->bias_sums = take(&at, l->out);
        l->rounded_bias = (float *)take(&at, (l->out + LANES - 1) / LANES);
        int outputs = l->side * l->side * l->out;
        l->before = take(&at, outputs);
        l->after = take(&at, outputs);
        l->grad = take(&at, outputs);
        l->weight = row + offset;
        l->weight_grad = grad + offset;
        offset += l->taps * l->out;
        l->bias = row + offset;
        l->bias_grad = grad + offset;
        offset += l->out;
    }
    for (int i = 0; i <= LAYERS; i++) {
        net->layers[i].threshold = row + offset + 3 * i;
        net->layers[i].threshold_grad = grad + offset + 3 * i;
    }
    net->logits = net->layers[LAYERS].after;
    return 1;
}

/* ---- parameters on their grids: Jain et al. 2019, eqs. 4-8 ---- */

static float on_grid(float x, int exponent, int bits) {
    float steps = rintf(ldexpf(x, -exponent)), top = (float)(1 << bits);
    return ldexpf(fminf(fmaxf(steps, -top), top - 1), exponent);
}

static int tap_of(const layer_t *l, int last, int index) {
    /* torch's (in, kh, kw) or flattened (c, h, w) to the order of the loops here, channels last */
    int window = last ? POOLED * POOLED : K * K;
    return index % window * l->in + index / window;
}

static int left_shift_limit(const layer_t *l) {
    float room = 32767 - 127 - 1, worst = (float)l->taps * 15 * 8;
    int limit = (int)floorf(log2f(room / worst));
    return limit > 0 ? limit : 0;
}

static void prepare(net_t *net) {
    int incoming = -OUT_BITS;
    for (int i = 0; i <= LAYERS; i++) {
        layer_t *l = &net->layers[i];
        l->weight_exp = (int)ceilf(l->threshold[0]) - WEIGHT_BITS;
        int highest = l->weight_exp + incoming, lowest = highest - left_shift_limit(l);
        int bias = (int)ceilf(l->threshold[1]) - BIAS_BITS;
        if (i < LAYERS) {
            int out = (int)ceilf(l->threshold[2]) - OUT_BITS;
            l->out_free = out >= lowest + 1;
            l->out_exp = l->out_free ? out : lowest + 1;
            if (highest > l->out_exp - 1) highest = l->out_exp - 1;
            incoming = l->out_exp;
        }
        l->bias_free = bias >= lowest && bias <= highest;
        l->bias_exp = bias < lowest ? lowest : bias > highest ? highest : bias;
        for (int o = 0; o < l->out; o++) {
            for (int t = 0; t < l->taps; t++) {
                float w = l->weight[o * l->taps + t];
                l->packed[tap_of(l, i == LAYERS, t) * l->out + o] =
                    net->mode == FLOAT ? w : on_grid(w, l->weight_exp, WEIGHT_BITS);
            }
            l->rounded_bias[o] =
                net->mode == FLOAT ? l->bias[o] : on_grid(l->bias[o], l->bias_exp, BIAS_BITS);
        }
    }
}

/* Gradient of a parameter and of its threshold from that of its value on the grid. */
static float to_parameter(float x, float grad, int exponent, int bits, float *threshold_grad) {
    float steps = rintf(ldexpf(x, -exponent)), top = (float)(1 << bits);
    int inside = steps >= -top && steps <= top - 1;
    *threshold_grad += grad * (on_grid(x, exponent, bits) - (inside ? x : 0));
    return inside ? grad : 0;
}

static void collect(net_t *net, float scale) {
    for (int i = 0; i <= LAYERS; i++) {
        layer_t *l = &net->layers[i];
        float thresholds[2] = {0, 0};
        for (int o = 0; o < l->out; o++) {
            for (int t = 0; t < l->taps; t++) {
                int index = o * l->taps + t;
                float g = scale * lanes_sum(l->sums[tap_of(l, i == LAYERS, t) * l->out + o]);
                if (net->mode != FLOAT)
                    g = to_parameter(l->weight[index], g, l->weight_exp, WEIGHT_BITS, thresholds);
                l->weight_grad[index] = g;
            }
            float g = scale * lanes_sum(l->bias_sums[o]);
            if (net->mode != FLOAT)
                g = to_parameter(l->bias[o], g, l->bias_exp, BIAS_BITS, &thresholds[1]);
            l->bias_grad[o] = g;
        }
        int trained = net->mode == QUANTIZED;
        const float ln2 = 0.69314718f;
        l->threshold_grad[0] = trained ? ln2 * thresholds[0] : 0;
        l->threshold_grad[1] = trained && l->bias_free ? ln2 * thresholds[1] : 0;
        if (i < LAYERS)
            l->threshold_grad[2] = trained && l->out_free ? ln2 * scale * lanes_sum(l->out_sum) : 0;
        memset(l->sums, 0, sizeof(v) * l->taps * l->out);
        memset(l->bias_sums, 0, sizeof(v) * l->out);
        l->out_sum = splat(0);
    }
}
