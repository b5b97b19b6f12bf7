#include "cpu/loader.h"

#include <memory>
#include <new>
#include <utility>

#include "cpu/jit_session.h"

namespace kvjit::rt {
namespace {

/// Many times the heap memory that LLVM takes to link an object of ours. Allocated once before linking begins, since
/// LLVM leaks what it holds when memory runs out.
constexpr std::size_t kLinkingBytes = std::size_t{4} << 20;

void check_room() {
    ::operator delete(::operator new(kLinkingBytes));
}

class LinkedImage final : public Image {
public:
    LinkedImage(JitCode code, const LaunchShape& launch) : Image(launch), code_(std::move(code)) {}
    void* entry() const override { return code_.entry(); }

private:
    JitCode code_;
};

}  // namespace

gen::Result<ImagePtr> load_object(std::string_view object, std::string_view entry, const std::string& name,
                                  const LaunchShape& launch) {
    check_room();
    gen::Result<JitCode> code = link_object(object, entry, name);
    // A policy has come since the process last loaded: now another way works, or the refusal says why none does.
    if (!code && code.error().status == KVJIT_BAD_TARGET) code = link_object(object, entry, name);
    if (code) return std::make_shared<LinkedImage>(*std::move(code), launch);
    code.error().message = "the object of " + name + " can't be loaded: " + code.error().message;
    return std::unexpected(code.error());
}

}  // namespace kvjit::rt
