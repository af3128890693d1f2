/* A network over a row of parameters: where everything lies, what the parameters are on their
 * grids, and gradients on their way back from there.
 */
#include <math.h>
#include <stdlib.h>

#include "paper_vectors.h"

enum { FLOAT, QUANTIZED, FROZEN };
enum { WEIGHT_BITS = 3, BIAS_BITS = 7, OUT_BITS = 4 }; /* of the fraction of a threshold */

/* Of the image and after each convolution: channels and, after any maximum, sides. */
static const int channels[LAYERS + 1] = {CHANNELS};
static const int sides[LAYERS + 1] = {SIDES};
static const int kernels[LAYERS] = {KERNELS}, strides[LAYERS] = {STRIDES};
static const int pooled[LAYERS] = {POOLED}; /* whether a 2x2 maximum follows */
#define FEATURES (sides[LAYERS] * sides[LAYERS] * channels[LAYERS])

typedef struct { /* one layer of the chain, the dense one last */
    int in, out, taps, window; /* channels, channels, weights an output, pixels that it reads */
    int side, pooled;          /* side of its output before a maximum, if there is one */
    float *weight, *bias, *threshold;       /* rows of the parameters */
    float *weight_grad, *bias_grad, *threshold_grad;
    float *packed; /* (tap, out), quantized */
    float *rounded_bias;
    int weight_exp, bias_exp, out_exp, bias_free, out_free;
    v *sums;       /* (tap, out): weight gradients, lane by lane */
    v *bias_sums, *before, *after, *grad; /* (position, out) */
    v *given, *given_grad; /* what the next layer reads: the maximum, or `after` and `grad` */
    v out_sum;
} layer_t;

typedef struct {
    layer_t layers[LAYERS + 1];
    v *image, *logits;
    int mode;
    void *memory;
} net_t;

int parameter_count(void) {
    int total = 3 * LAYERS + 2;
    for (int i = 0; i < LAYERS; i++)
        total += channels[i + 1] * (channels[i] * kernels[i] * kernels[i] + 1);
    return total + CLASSES * (FEATURES + 1);
}

/* ---- a network over a row of parameters ---- */

static v *take(char **free_bytes, size_t vectors) {
    v *taken = (v *)*free_bytes;
    *free_bytes += vectors * sizeof(v);
    return taken;
}

static int make(net_t *net, float *row, float *grad, int mode) {
    const int pixels = sides[0] * sides[0] * channels[0];
    size_t vectors = pixels;
    for (int i = 0; i <= LAYERS; i++) {
        layer_t *l = &net->layers[i];
        l->in = channels[i];
        l->out = i == LAYERS ? CLASSES : channels[i + 1];
        l->window = i == LAYERS ? sides[i] * sides[i] : kernels[i] * kernels[i];
        l->taps = l->window * l->in;
        l->side = i == LAYERS ? 1 : (sides[i] - kernels[i]) / strides[i] + 1;
        l->pooled = i < LAYERS && pooled[i];
        int whole = l->side * l->side, half = l->pooled * (l->side / 2) * (l->side / 2);
        vectors += 2 * l->taps * l->out + 4 * l->out + (3 * whole + 2 * half) * l->out;
    }
    if (posix_memalign(&net->memory, sizeof(v), vectors * sizeof(v))) return 0;
    memset(net->memory, 0, vectors * sizeof(v));
    char *at = net->memory;
    net->mode = mode;
    net->image = take(&at, pixels);
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
        int half = l->pooled ? (l->side / 2) * (l->side / 2) * l->out : 0;
        l->given = l->pooled ? take(&at, half) : l->after;
        l->given_grad = l->pooled ? take(&at, half) : l->grad;
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

static int tap_of(const layer_t *l, int index) {
    /* torch's (in, kh, kw) or flattened (c, h, w) to the order of the loops here, channels last */
    return index % l->window * l->in + index / l->window;
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
                l->packed[tap_of(l, t) * l->out + o] =
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
                float g = scale * lanes_sum(l->sums[tap_of(l, t) * l->out + o]);
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
