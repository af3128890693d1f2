/* What sketches of package=arduino use of an Arduino core for ARM, declared alone: such a core is not packaged here. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define PROGMEM
#define HIGH 1
#define LOW 0
#define OUTPUT 1
#define LED_BUILTIN 13
class __FlashStringHelper;
#define F(text) ((const __FlashStringHelper *)(text))

struct Line {
    void begin(unsigned long baud);
    int available();
    int read();
    size_t print(const __FlashStringHelper *text);
    size_t print(char byte);
    size_t print(double value);
    size_t print(int value);
    size_t print(unsigned int value);
    size_t print(long value);
    size_t print(unsigned long value);
    size_t println();
    size_t println(const __FlashStringHelper *text);
    size_t println(int value);
};
extern Line Serial;

extern "C" {
unsigned long micros(void);
void delay(unsigned long ms);
void pinMode(uint8_t pin, uint8_t mode);
void digitalWrite(uint8_t pin, uint8_t level);
}
