#include "c_struct.h"

#include <algorithm>

namespace kvjit::rt {
namespace {

template <std::size_t N>
void copy_text(const std::string& text, char (&to)[N]) {
    const std::size_t size = std::min(text.size(), N - 1);
    std::copy_n(text.data(), size, to);
    to[size] = '\0';
}

}  // namespace

kvjit_status report(const gen::Error& failure, kvjit_error* error) {
    if (error == nullptr || error->struct_size < sizeof *error) return failure.status;
    error->status = failure.status;
    error->value = failure.value;
    error->limit = failure.limit;
    error->sequence = failure.sequence;
    copy_text(failure.argument, error->argument);
    copy_text(failure.message, error->message);
    return failure.status;
}

}  // namespace kvjit::rt
