/* Training of one small chain on one core: valid convolutions, 2x2 maximums between them, a dense
 * layer. LANES images go through the network side by side, one in each lane of a vector, so that
 * no channel count is too odd for the machine. Computes what pipeline/quantize/simulated.py
 * computes, forward bit for bit (a test compares both, gradients too), over ten times as fast.
 *
 * Shapes are given by the compiler's command line: CHANNELS and SIDES (of the square image first) of
 * LAYERS convolutions, their KERNELS, STRIDES and whether they are POOLED; CLASSES.
 *
 * A trial's parameters are one row of floats: for each layer weights (out, in, kh, kw), biases;
 * then for each layer log2 thresholds of weights, biases and, but for the last, outputs.
 */
#include <math.h>
#include <stdlib.h>

#include "paper_network.h"

/* ---- activations ---- */

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

static void pool(const layer_t *l) {
    const int c = l->out, row = l->side * c, half = l->side / 2;
    for (int y = 0; y < half; y++)
        for (int x = 0; x < half * c; x++) {
            const v *a = l->after + 2 * y * row + x / c * 2 * c + x % c;
            l->given[y * half * c + x] = larger(larger(a[0], a[c]), larger(a[row], a[row + c]));
        }
}

/* To the first of equal elements, as PyTorch does. */
static void unpool(layer_t *l) {
    const int c = l->out, row = l->side * c, half = l->side / 2;
    memset(l->grad, 0, sizeof(v) * l->side * row);
    for (int y = 0; y < half; y++)
        for (int x = 0; x < half * c; x++) {
            const int at = 2 * y * row + x / c * 2 * c + x % c, order[4] = {0, c, row, row + c};
            v most = l->given[y * half * c + x], g = l->given_grad[y * half * c + x];
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
        for (int o = 0; o < CLASSES; o++) acc[o] += l->packed[t * CLASSES + o] * l[-1].given[t];
    memcpy(l->after, acc, sizeof acc);
}

static void dense_back(net_t *net) {
    layer_t *l = &net->layers[LAYERS];
    for (int o = 0; o < CLASSES; o++) l->bias_sums[o] += l->grad[o];
    for (int t = 0; t < l->taps; t++) {
        v sum = splat(0), x = l[-1].given[t];
        for (int o = 0; o < CLASSES; o++) {
            sum += l->packed[t * CLASSES + o] * l->grad[o];
            l->sums[t * CLASSES + o] += x * l->grad[o];
        }
        l[-1].given_grad[t] = sum;
    }
}

/* ---- the chain ---- */

#define SHAPE(I) sides[I], (sides[I] - kernels[I]) / strides[I] + 1, kernels[I], strides[I]

/* CI to CO channels, of these N from O0 on */
#define CONV(I, CI, CO, O0, N)                                                         \
    if (!back)                                                                         \
        forward(in, l->packed, l->rounded_bias, l->before, CI, CO, O0, N, SHAPE(I));   \
    else                                                                               \
        to_weights(in, l->grad, l->sums, CI, CO, O0, N, SHAPE(I));                     \
    if (back && I) to_input(l[-1].given_grad, l->packed, l->grad, CI, CO, O0, N, SHAPE(I));

/* One specialised copy of the loops for each layer: CASES is a list of cases with CONV in them. */
static void convolve(net_t *net, int i, int back) {
    layer_t *l = &net->layers[i];
    const v *in = i ? l[-1].given : net->image;
    if (back && i) memset(l[-1].given_grad, 0, sizeof(v) * sides[i] * sides[i] * l->in);
    switch (i) { CASES }
}

static void infer(net_t *net) {
    for (int i = 0; i < LAYERS; i++) {
        convolve(net, i, 0);
        activate(&net->layers[i], net->mode);
        if (pooled[i]) pool(&net->layers[i]);
    }
    dense(net);
}

static void learn(net_t *net) {
    dense_back(net);
    for (int i = LAYERS - 1; i >= 0; i--) {
        if (pooled[i]) unpool(&net->layers[i]);
        deactivate(&net->layers[i], net->mode);
        convolve(net, i, 1);
    }
}

/* Images are (side, side, channels) of 0...15. */
static void load(net_t *net, const uint8_t *images, const uint32_t *order, int count) {
    const int pixels = sides[0] * sides[0] * channels[0];
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
            float label = hard * (one[o] - (o == labels[index]));
            grad[o][lane] = use * (label + soft * (warm[o] - target));
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

/* Steps of Adam (Kingma & Ba 2015) at `rates`; `done` went before. Returns the mean loss. */
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
        const uint32_t *part = order + (size_t)s * size;
        total += batch(&net, images, labels, shares, part, size, hard, temperature);
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
