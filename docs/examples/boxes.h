/* Boxes out of a detector's output: an example to copy into your firmware. Include it after model.h.
 *
 *     static box_t boxes[20];
 *     int count = boxes_yolo(nn_output(), NN_OUTPUT_COUNT, 6, 0.3f, boxes, 20);
 *     count = boxes_suppress(boxes, count, 0.45f);
 *
 * Coordinates are parts of the image's width and height, 0 to 1. `most`, at least 1, is how many boxes there is room
 * for: the best ones stay, sorted by falling score.
 */
#ifndef BOXES_H
#define BOXES_H

#include <stdint.h>

typedef struct {
    float left, top, right, bottom, score;
    int label;
} box_t;

static inline int boxes_add(box_t *boxes, int count, int most, box_t box) {
    if (count < most) {
        count++;
    } else if (boxes[most - 1].score >= box.score) {
        return count;
    }
    int at = count - 1;
    for (; at > 0 && boxes[at - 1].score < box.score; at--) {
        boxes[at] = boxes[at - 1];
    }
    boxes[at] = box;
    return count;
}

/* YOLOv5: rows of `width` values: centre, width and height, whether there is anything, and a score for each class. */
static inline int boxes_yolo(
    const nn_output_t *output, int32_t count, int width, float least, box_t *boxes, int most
) {
    int found = 0;
    for (const nn_output_t *row = output; row < output + count; row += width) {
        int label = 0;
        for (int n = 1; n < width - 5; n++) {
            label = row[5 + n] > row[5 + label] ? n : label;
        }
        const float score = nn_dequantize(row[4]) * nn_dequantize(row[5 + label]);
        if (score >= least) {
            const float x = nn_dequantize(row[0]), across = nn_dequantize(row[2]) / 2;
            const float y = nn_dequantize(row[1]), down = nn_dequantize(row[3]) / 2;
            const box_t box = {x - across, y - down, x + across, y + down, score, label};
            found = boxes_add(boxes, found, most, box);
        }
    }
    return found;
}

static inline float boxes_area(float width, float height) { return width > 0 && height > 0 ? width * height : 0; }

/* The intersection of two boxes over their union. */
static inline float boxes_overlap(const box_t *a, const box_t *b) {
    const float left = a->left > b->left ? a->left : b->left, right = a->right < b->right ? a->right : b->right;
    const float top = a->top > b->top ? a->top : b->top, bottom = a->bottom < b->bottom ? a->bottom : b->bottom;
    const float both = boxes_area(right - left, bottom - top);
    const float first = boxes_area(a->right - a->left, a->bottom - a->top);
    const float second = boxes_area(b->right - b->left, b->bottom - b->top);
    return both > 0 ? both / (first + second - both) : 0;
}

/* Non-maximum suppression: of boxes of one class that overlap by more than `most`, the best is kept. */
static inline int boxes_suppress(box_t *boxes, int count, float most) {
    int kept = 0;
    for (int n = 0; n < count; n++) {
        int k = 0;
        while (k < kept && (boxes[k].label != boxes[n].label || boxes_overlap(&boxes[k], &boxes[n]) <= most)) {
            k++;
        }
        if (k == kept) {
            boxes[kept++] = boxes[n];
        }
    }
    return kept;
}

/* FOMO: (rows, columns, classes) scores, class 0 is the background. Neighbouring cells of one class make one box. */
static inline int boxes_fomo(
    const nn_output_t *output, int rows, int columns, int classes, float least, box_t *boxes, int most
) {
    int count = 0;
    for (int at = 0; at < rows * columns * classes; at++) {
        const int x = at / classes % columns, y = at / classes / columns;
        const float score = nn_dequantize(output[at]);
        const box_t cell = {(float)x, (float)y, (float)(x + 1), (float)(y + 1), score, at % classes};
        if (cell.label && score >= least) {
            count = boxes_add(boxes, count, most, cell);
        }
    }
    for (int n = 0; n < count; n++) { /* joins what touches, until nothing does */
        for (int k = n + 1; k < count; k++) {
            box_t *a = &boxes[n], *b = &boxes[k];
            if (a->label == b->label && a->left <= b->right && b->left <= a->right && a->top <= b->bottom
                && b->top <= a->bottom) {
                a->left = a->left < b->left ? a->left : b->left;
                a->top = a->top < b->top ? a->top : b->top;
                a->right = a->right > b->right ? a->right : b->right;
                a->bottom = a->bottom > b->bottom ? a->bottom : b->bottom;
                count--;
                for (int m = k; m < count; m++) {
                    boxes[m] = boxes[m + 1];
                }
                n = -1;
                break;
            }
        }
    }
    for (int n = 0; n < count; n++) {
        boxes[n].left /= (float)columns;
        boxes[n].right /= (float)columns;
        boxes[n].top /= (float)rows;
        boxes[n].bottom /= (float)rows;
    }
    return count;
}

#endif
