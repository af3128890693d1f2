#include <stdint.h>
#include <stdio.h>
#define K_FOREVER 0
#define K_LOWEST_APPLICATION_THREAD_PRIO 14
#define K_MSGQ_DEFINE(name, size, count, align) static int name[(size) * (count)]
#define K_THREAD_DEFINE(name, stack, entry, a, b, c, priority, options, delay) \
    static char name[stack]; void start_##name(void) { name[0] = 0; entry(a, b, c); }
static inline int k_msgq_get(void *queue, void *data, int wait) { return queue && data && wait; }
#define printk printf
