#ifdef __AVR__
#define LOOP(n) __asm__ volatile("ldi r24, %0\n1: dec r24\nbrne 1b\n" ::"M"(n) : "r24")
#else
#define LOOP(n)
#endif
__attribute__((noinline)) static void leaf(void) { LOOP(10); }
__attribute__((noinline)) static void one(void) { LOOP(100); }
__attribute__((noinline)) static void two(void) { leaf(); LOOP(200); leaf(); }
