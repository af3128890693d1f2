/* Vectors of LANES images, and the loops of a valid convolution over them.
 *
 * Elements are (position, channel), weights (tap, output channel) with taps in the order ky, kx,
 * input channel. A call takes the output channels from `o0` on, `n` (at most 16) of `co`. All sizes
 * are constants where these functions are inlined, so that sums stay in registers: `ci` input
 * channels, `width` and `side` of input and output (at least 2), `k` of the kernel, its stride `st`.
 */
#include <stdint.h>
#include <string.h>

/* As many as a register of the machine holds: gcc takes wider vectors apart in memory. */
#ifdef __AVX512F__
#define LANES 16
#elif defined __AVX__
#define LANES 8
#else
#define LANES 4
#endif
typedef float v __attribute__((vector_size(4 * LANES)));
typedef int32_t m __attribute__((vector_size(4 * LANES)));

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


#define UNROLL _Pragma("GCC unroll 32")
#define INLINE static inline __attribute__((always_inline))

INLINE void forward(const v *in, const float *packed, const float *bias, v *out, int ci, int co,
                    int o0, int n, int width, int side, int k, int st) {
    for (int y = 0; y < side; y++)
        for (int pair = 0; pair < side; pair += 2) { /* two outputs side by side share each weight */
            const int x = pair + 1 < side ? pair : side - 2;
            v acc[2][16];
            UNROLL for (int o = 0; o < n; o++) acc[0][o] = acc[1][o] = splat(bias[o0 + o]);
            for (int ky = 0; ky < k; ky++) {
                const v *line = in + ((y * st + ky) * width + x * st) * ci;
                const float *w = packed + ky * k * ci * co + o0;
                for (int t = 0; t < k * ci; t++, w += co) {
                    v a = line[t], b = line[t + st * ci];
                    UNROLL for (int o = 0; o < n; o++) {
                        acc[0][o] += w[o] * a;
                        acc[1][o] += w[o] * b;
                    }
                }
            }
            v *to = out + (y * side + x) * co + o0;
            UNROLL for (int o = 0; o < n; o++) {
                to[o] = acc[0][o];
                to[co + o] = acc[1][o];
            }
        }
}

/* Adds to `in_grad`. */
INLINE void to_input(v *in_grad, const float *packed, const v *grad, int ci, int co, int o0, int n,
                     int width, int side, int k, int st) {
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            v g[16];
            UNROLL for (int o = 0; o < n; o++) g[o] = grad[(y * side + x) * co + o0 + o];
            for (int ky = 0; ky < k; ky++) {
                v *line = in_grad + ((y * st + ky) * width + x * st) * ci;
                const float *w = packed + ky * k * ci * co + o0;
                for (int t = 0; t < k * ci; t++, w += co) {
                    v sum = line[t];
                    UNROLL for (int o = 0; o < n; o++) sum += w[o] * g[o];
                    line[t] = sum;
                }
            }
        }
}

INLINE void to_weights(const v *in, const v *grad, v *sums, int ci, int co, int o0, int n,
                       int width, int side, int k, int st) {
    for (int ky = 0; ky < k; ky++)
        for (int t = 0; t < k * ci; t += 2) { /* two taps share a gradient; the last may be alone */
            const int second = t + 1 < k * ci;
            v acc[2][16];
            v *to = sums + (ky * k * ci + t) * co + o0;
            UNROLL for (int o = 0; o < n; o++) {
                acc[0][o] = to[o];
                acc[1][o] = splat(0);
            }
            for (int y = 0; y < side; y++) {
                const v *line = in + (y * st + ky) * width * ci + t, *g = grad + y * side * co + o0;
                for (int x = 0; x < side; x++, line += st * ci, g += co) {
                    v a = line[0], b = line[second];
                    UNROLL for (int o = 0; o < n; o++) {
                        acc[0][o] += a * g[o];
                        acc[1][o] += b * g[o];
                    }
                }
            }
            UNROLL for (int o = 0; o < n; o++) {
                to[o] = acc[0][o];
                if (second) to[co + o] += acc[1][o];
            }
        }
}
