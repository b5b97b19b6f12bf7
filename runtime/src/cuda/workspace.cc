#include "cuda/workspace.h"

#include "check/check_options.h"

namespace kvjit::rt {
namespace {

constexpr std::size_t kAlignment = 64;  // the alignment of a caller's workspace

std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::size_t WorkspaceLayout::counters_offset() const {
    return aligned(fault_bytes);
}
std::size_t WorkspaceLayout::slopes_offset() const {
    return counters_offset() + aligned(counters_bytes);
}
std::size_t WorkspaceLayout::lists_offset() const {
    return slopes_offset() + aligned(slopes_bytes);
}
std::size_t WorkspaceLayout::partials_offset() const {
    return lists_offset() + aligned(lists_bytes);
}
std::size_t WorkspaceLayout::bytes() const {
    return partials_offset() + partials_bytes;
}

Workspace::~Workspace() {
    if (owned_ != nullptr) device_.release(owned_);
}

gen::Result<void> Workspace::take(const WorkspaceLayout& layout, void* given, std::size_t given_bytes, void* stream) {
    layout_ = layout;
    if (given != nullptr) order_ = stream;
    if (layout.bytes() == 0) return {};
    if (gen::Result<void> found = find_memory(given, given_bytes); !found) return found;
    const std::size_t zeros = layout.slopes_offset();  // zeroes fault and counters in one call
    return zeros != 0 ? device_.zero(memory_, zeros, order_) : gen::Result<void>{};
}

gen::Result<void> Workspace::write_slopes(const float* slopes) {
    if (layout_.slopes_bytes == 0) return {};
    return device_.upload(this->slopes(), slopes, layout_.slopes_bytes, order_);
}

gen::Result<void> Workspace::write_lists(const std::int64_t* lists) {
    if (layout_.lists_bytes == 0) return {};
    return device_.upload(this->lists(), lists, layout_.lists_bytes, order_);
}

gen::Result<void> Workspace::find_memory(void* given, std::size_t given_bytes) {
    const std::size_t needed = layout_.bytes();
    if (given == nullptr) {
        gen::Result<void*> made = device_.allocate(needed);
        if (!made) return std::unexpected(made.error());
        owned_ = *made;
        memory_ = static_cast<char*>(owned_);
        return {};
    }
    if (auto fits = check_workspace(given_bytes, needed); !fits) return fits;
    memory_ = static_cast<char*>(given);
    return {};
}

}  // namespace kvjit::rt
