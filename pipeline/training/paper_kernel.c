/* Training of one small chain on one core: three or so valid convolutions, a 2x2 maximum, a dense
 * layer. LANES images go through the network side by side, one in each lane of a vector, so that
 * no channel count is too odd for the machine. Computes what pipeline/quantize/simulated.py
 * computes, forward bit for bit (a test compares both, gradients too), about ten times as fast.
 *
 * Shapes are given by the compiler's command line: LAYERS convolutions of K x K, CHANNELS (that of
 * the image first), SIZE (side of the square pooled image), CLASSES.
 *
 * A trial's parameters are one row of floats: for each layer weights (out, in, kh, kw), biases;
 * then for each layer log2 thresholds of weights, biases and, but for the last, outputs.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 16
#define MOST 1024 /* weights of a convolution */
typedef float v __attribute__((vector_size(4 * LANES)));
typedef int32_t m __attribute__((vector_size(4 * LANES)));

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
    v *image, *image_grad, *pool, *pool_grad, *logits;
    int mode;
    void *memory;
} net_t;

static v splat(float x) { return x - (v){0}; }

/* To the nearest whole number, ties to even, below 2**22: the sum has no room for a fraction. */
static v rounded(v x) {
    const v magic = splat(12582912.0f);
    return (x + magic) - magic;
}

static v choose(m where, v x) { return (v)((m)x & where); }
static v larger(v a, v b) { return choose(a > b, a) + choose(a <= b, b); }

static float lanes_sum(v x) {
    float total = 0;
    for (int i = 0; i < LANES; i++) total += x[i];
    return total;
}

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
    size_t vectors = 2 * SIZE * SIZE * channels[0] + 2 * FEATURES(channels[LAYERS]) + 2 * CLASSES;
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
    net->image_grad = take(&at, SIZE * SIZE * channels[0]);
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
                    g = to_parameter(l->weight[index], g, l->weight_exp, WEIGHT_BITS, &thresholds[0]);
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

/* ---- convolutions: CI, CO and OUT (side of the output) are constants wherever they are inlined ---- */

#define UNROLL _Pragma("GCC unroll 32")
#define INLINE static inline __attribute__((always_inline))

INLINE void forward(const v *in, const float *packed, const float *bias, v *out, int ci, int co,
                    int side, int k) {
    const int width = side + k - 1;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x += 2) { /* two outputs side by side share each weight */
            v acc[2][16];
            UNROLL for (int o = 0; o < co; o++) acc[0][o] = acc[1][o] = splat(bias[o]);
            for (int ky = 0; ky < k; ky++) {
                const v *line = in + ((y + ky) * width + x) * ci;
                const float *w = packed + ky * k * ci * co;
                for (int t = 0; t < k * ci; t++, w += co) {
                    v a = line[t], b = line[t + ci];
                    UNROLL for (int o = 0; o < co; o++) {
                        acc[0][o] += w[o] * a;
                        acc[1][o] += w[o] * b;
                    }
                }
            }
            v *to = out + (y * side + x) * co;
            UNROLL for (int o = 0; o < co; o++) {
                to[o] = acc[0][o];
                to[co + o] = acc[1][o];
            }
        }
}

INLINE void to_input(v *in_grad, const float *packed, const v *grad, int ci, int co, int side, int k) {
    const int width = side + k - 1;
    memset(in_grad, 0, sizeof(v) * width * width * ci);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            v g[16];
            UNROLL for (int o = 0; o < co; o++) g[o] = grad[(y * side + x) * co + o];
            for (int ky = 0; ky < k; ky++) {
                v *line = in_grad + ((y + ky) * width + x) * ci;
                const float *w = packed + ky * k * ci * co;
                for (int t = 0; t < k * ci; t++, w += co) {
                    v sum = line[t];
                    UNROLL for (int o = 0; o < co; o++) sum += w[o] * g[o];
                    line[t] = sum;
                }
            }
        }
}

INLINE void to_weights(const v *in, const v *grad, v *sums, int ci, int co, int side, int k) {
    const int width = side + k - 1;
    for (int ky = 0; ky < k; ky++)
        for (int t = 0; t < k * ci; t += 2) { /* two taps share each gradient; the last may be alone */
            const int second = t + 1 < k * ci;
            v acc[2][16];
            v *to = sums + (ky * k * ci + t) * co;
            UNROLL for (int o = 0; o < co; o++) {
                acc[0][o] = to[o];
                acc[1][o] = splat(0);
            }
            for (int y = 0; y < side; y++) {
                const v *line = in + (y + ky) * width * ci + t, *g = grad + y * side * co;
                for (int x = 0; x < side; x++, line += ci, g += co) {
                    v a = line[0], b = line[second];
                    UNROLL for (int o = 0; o < co; o++) {
                        acc[0][o] += a * g[o];
                        acc[1][o] += b * g[o];
                    }
                }
            }
            UNROLL for (int o = 0; o < co; o++) {
                to[o] = acc[0][o];
                if (second) to[co + o] += acc[1][o];
            }
        }
}

/* ReLU, or the clip and rounding to unsigned 4-bit steps. */
static void activate(const layer_t *l, int mode) {
    const int count = l->side * l->side * l->out;
    const v low = splat(0), high = splat(15), step = splat(ldexpf(1, l->out_exp));
    const v inverse = splat(ldexpf(1, -l->out_exp));
    for (int i = 0; i < count; i++) {
        v x = l->before[i];
        if (mode != FLOAT) {
            x = rounded(x * inverse);
            x = -larger(-x, -high);
        }
        x = choose(x > low, x);
        l->after[i] = mode == FLOAT ? x : x * step;
    }
}

static void deactivate(layer_t *l, int mode) {
    const int count = l->side * l->side * l->out;
    const v low = splat(0), high = splat(15);
    const v inverse = splat(ldexpf(1, -l->out_exp));
    for (int i = 0; i < count; i++) {
        v x = l->before[i], g = l->grad[i];
        if (mode == FLOAT) {
            g = choose(x > low, g);
        } else {
            v steps = rounded(x * inverse), all = g;
            g = choose((steps >= low) & (steps <= high), g);
            l->out_sum += all * l->after[i] - g * x;
        }
        l->grad[i] = g;
        l->bias_sums[i % l->out] += g;
    }
}

/* ---- 2x2 maximum and dense layer ---- */

static void pool(net_t *net) {
    const layer_t *l = &net->layers[LAYERS - 1];
    const int c = l->out, row = l->side * c;
    for (int y = 0; y < POOLED; y++)
        for (int x = 0; x < POOLED * c; x++) {
            const v *a = l->after + 2 * y * row + x / c * 2 * c + x % c;
            net->pool[y * POOLED * c + x] = larger(larger(a[0], a[c]), larger(a[row], a[row + c]));
        }
}

/* To the first of equal elements, as PyTorch does. */
static void unpool(net_t *net) {
    const layer_t *l = &net->layers[LAYERS - 1];
    const int c = l->out, row = l->side * c;
    memset(l->grad, 0, sizeof(v) * l->side * row);
    for (int y = 0; y < POOLED; y++)
        for (int x = 0; x < POOLED * c; x++) {
            const int at = 2 * y * row + x / c * 2 * c + x % c, order[4] = {0, c, row, row + c};
            v most = net->pool[y * POOLED * c + x], g = net->pool_grad[y * POOLED * c + x];
            m open = (m)(splat(0) == splat(0));
            for (int i = 0; i < 4; i++) {
                m here = open & (m)(l->after[at + order[i]] == most);
                l->grad[at + order[i]] = choose(here, g);
                open &= ~here;
            }
        }
}

static void dense(net_t *net) {
    const layer_t *l = &net->layers[LAYERS];
    v acc[CLASSES];
    for (int o = 0; o < CLASSES; o++) acc[o] = splat(l->rounded_bias[o]);
    for (int t = 0; t < l->taps; t++)
        for (int o = 0; o < CLASSES; o++) acc[o] += l->packed[t * CLASSES + o] * net->pool[t];
    memcpy(l->after, acc, sizeof acc);
}

static void dense_back(net_t *net) {
    layer_t *l = &net->layers[LAYERS];
    for (int o = 0; o < CLASSES; o++) l->bias_sums[o] += l->grad[o];
    for (int t = 0; t < l->taps; t++) {
        v sum = splat(0), x = net->pool[t];
        for (int o = 0; o < CLASSES; o++) {
            sum += l->packed[t * CLASSES + o] * l->grad[o];
            l->sums[t * CLASSES + o] += x * l->grad[o];
        }
        net->pool_grad[t] = sum;
    }
}

/* ---- the chain ---- */

static const v *input_of(const net_t *net, int i) { return i ? net->layers[i - 1].after : net->image; }

#define CONV(I, CI, CO)                                                                            \
    case I:                                                                                        \
        if (back) {                                                                                \
            to_weights(input_of(net, I), l->grad, l->sums, CI, CO, SIDE(I + 1), K);                \
            if (I) to_input(net->layers[I - 1].grad, l->packed, l->grad, CI, CO, SIDE(I + 1), K);  \
        } else                                                                                     \
            forward(input_of(net, I), l->packed, l->rounded_bias, l->before, CI, CO, SIDE(I + 1), K); \
        break;

/* One specialised copy of the loops for each layer: CASES is a list of CONV(index, in, out). */
static void convolve(net_t *net, int i, int back) {
    layer_t *l = &net->layers[i];
    switch (i) { CASES }
}

static void infer(net_t *net) {
    for (int i = 0; i < LAYERS; i++) {
        convolve(net, i, 0);
        activate(&net->layers[i], net->mode);
    }
    pool(net);
    dense(net);
}

static void learn(net_t *net) {
    dense_back(net);
    unpool(net);
    for (int i = LAYERS - 1; i >= 0; i--) {
        deactivate(&net->layers[i], net->mode);
        convolve(net, i, 1);
    }
}

/* Images are (SIZE, SIZE, channels) of 0...15. */
static void load(net_t *net, const uint8_t *images, const uint32_t *order, int count) {
    const int pixels = SIZE * SIZE * channels[0];
    for (int lane = 0; lane < LANES; lane++) {
        const uint8_t *from = images + (size_t)order[lane < count ? lane : 0] * pixels;
        for (int i = 0; i < pixels; i++) ((float *)(net->image + i))[lane] = from[i] / 16.0f;
    }
}

/* Softmax of the logits at a temperature; returns the log of the sum minus the greatest. */
static float softmax(const net_t *net, int lane, float temperature, float *shares) {
    float top = -INFINITY, sum = 0;
    for (int o = 0; o < CLASSES; o++) top = fmaxf(top, net->logits[o][lane]);
    for (int o = 0; o < CLASSES; o++)
        sum += shares[o] = expf((net->logits[o][lane] - top) / temperature);
    for (int o = 0; o < CLASSES; o++) shares[o] /= sum;
    return logf(sum) + top / temperature;
}

/* Cross-entropy with the label, and with the teacher's shares at a temperature (Hinton et al.
 * 2015, weighed with its square), mixed. Leaves the gradient; returns the loss. */
static float judge(net_t *net, const uint8_t *labels, const uint8_t *shares, const uint32_t *order,
                   int count, float hard, float temperature) {
    v *grad = net->layers[LAYERS].grad;
    float total = 0;
    for (int lane = 0; lane < LANES; lane++) {
        float one[CLASSES], warm[CLASSES];
        const uint32_t index = order[lane < count ? lane : 0];
        const uint8_t *wanted = shares + (size_t)index * CLASSES;
        float whole = 0, use = lane < count ? 1 : 0;
        for (int o = 0; o < CLASSES; o++) whole += wanted[o];
        float lost = hard * (softmax(net, lane, 1, one) - net->logits[labels[index]][lane]);
        float log_sum = softmax(net, lane, temperature, warm);
        const float soft = (1 - hard) * temperature;
        for (int o = 0; o < CLASSES; o++) {
            float target = wanted[o] / whole, logit = net->logits[o][lane];
            lost += soft * temperature * target * (log_sum - logit / temperature);
            grad[o][lane] = use * (hard * (one[o] - (o == labels[index])) + soft * (warm[o] - target));
        }
        total += use * lost;
    }
    return total;
}

/* Mean loss and gradient over `count` images. */
static float batch(net_t *net, const uint8_t *images, const uint8_t *labels, const uint8_t *shares,
                   const uint32_t *order, int count, float hard, float temperature) {
    float total = 0;
    prepare(net);
    for (int at = 0; at < count; at += LANES) {
        load(net, images, order + at, count - at);
        infer(net);
        total += judge(net, labels, shares, order + at, count - at, hard, temperature);
        learn(net);
    }
    collect(net, 1.0f / count);
    return total / count;
}

/* ---- what Python calls; all return something not finite when memory is short ---- */

float gradient(float *row, float *grad, int mode, const uint8_t *images, const uint8_t *labels,
               const uint8_t *shares, const uint32_t *order, int count, float hard,
               float temperature) {
    net_t net;
    memset(&net, 0, sizeof net);
    if (!make(&net, row, grad, mode)) return NAN;
    float loss = batch(&net, images, labels, shares, order, count, hard, temperature);
    free(net.memory);
    return loss;
}

/* `steps` steps of Adam (Kingma & Ba 2015) at `rates`; `done` went before. Returns the mean loss. */
float train(float *row, float *first, float *second, int done, int mode, const uint8_t *images,
            const uint8_t *labels, const uint8_t *shares, const uint32_t *order, int steps,
            int size, const float *rates, float hard, float temperature) {
    const int count = parameter_count();
    net_t net;
    memset(&net, 0, sizeof net);
    float *grad = calloc(count, sizeof(float)), total = 0;
    if (!grad || !make(&net, row, grad, mode)) {
        free(grad);
        return NAN;
    }
    for (int s = 0; s < steps; s++) {
        total += batch(&net, images, labels, shares, order + (size_t)s * size, size, hard, temperature);
        const double now = done + s + 1;
        const float rate = (float)(rates[s] / (1 - pow(0.9, now)));
        const float root = (float)sqrt(1 - pow(0.999, now));
        for (int i = 0; i < count; i++) {
            first[i] = 0.9f * first[i] + 0.1f * grad[i];
            second[i] = 0.999f * second[i] + 0.001f * grad[i] * grad[i];
            row[i] -= rate * first[i] / (sqrtf(second[i]) / root + 1e-8f);
        }
    }
    free(net.memory);
    free(grad);
    return total / steps;
}

/* Logits (count, CLASSES) of all images. Returns 0. */
float predict(float *row, int mode, const uint8_t *images, int count, float *logits) {
    net_t net;
    memset(&net, 0, sizeof net);
    if (!make(&net, row, row, mode)) return NAN;
    prepare(&net);
    for (int at = 0; at < count; at += LANES) {
        uint32_t order[LANES];
        for (int i = 0; i < LANES; i++) order[i] = at + i < count ? at + i : 0;
        load(&net, images, order, LANES);
        infer(&net);
        for (int o = 0; o < CLASSES; o++)
            for (int i = 0; i < LANES && at + i < count; i++)
                logits[(size_t)(at + i) * CLASSES + o] = net.logits[o][i];
    }
    free(net.memory);
    return 0;
}
