/* The recorded interface of x86-64, as the C compiler sees the headers: a row that isn't so does not compile.
 * A change on purpose: `ninja -C build record_abi`. */
#include <kvjit/blocks.h>
#include <kvjit/kvjit.h>
#include <stddef.h>

#define STRUCT(type, bytes) \
    _Static_assert(sizeof(type) == (bytes), #type " has another size than it was recorded with");
#define FIELD(type, field, kind, offset, bytes)                                                \
    _Static_assert(offsetof(type, field) == (offset) && sizeof(((type *)0)->field) == (bytes), \
                   #type "." #field " lies elsewhere than recorded, or is no " #kind " any more");
#define VALUE(name, number) _Static_assert(name == (number), #name " is another number than it was recorded with");
#define FUNCTION(name) _Static_assert(sizeof(&name) == sizeof(void (*)(void)), #name " is no function any more");
#include "contract.inc"
