/* Prints the version of the library that is loaded; it must be the headers', in numbers too. */
#include <kvjit/kvjit.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    char text[32];
    const int32_t number = kvjit_version_number();
    snprintf(text, sizeof text, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    puts(kvjit_version());
    if (strcmp(text, kvjit_version()) != 0 || number != KVJIT_VERSION_NUMBER) return 1;
    return strcmp(kvjit_version(), KVJIT_VERSION) == 0 ? 0 : 1;
}
