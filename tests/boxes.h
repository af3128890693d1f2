typedef unsigned char nn_output_t;
static float nn_dequantize(nn_output_t value) { return 0.0078125f * (value - 3); }
#include "boxes.h"
int yolo(nn_output_t *of, box_t *boxes) {
    return boxes_suppress(boxes, boxes_yolo(of, 60 * 7, 7, 0.3f, boxes, 20), 0.4f);
}
int fomo(nn_output_t *of, box_t *boxes) { return boxes_fomo(of, 6, 8, 3, 0.9f, boxes, 99); }
