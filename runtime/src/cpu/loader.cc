#include "cpu/loader.h"

#include <memory>
#include <new>
#include <utility>

#include "cpu/jit_session.h"

namespace kvjit::rt {
namespace {

/// Room that LLVM takes on the heap to link an object of ours, many times over: asked for before it begins, since what
/// it has in hand when memory ends is never freed.
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
    // A policy came over the process since it last loaded: now there is another way, or a refusal that says so.
    if (!code && code.error().status == KVJIT_BAD_TARGET) code = link_object(object, entry, name);
    if (code) return std::make_shared<LinkedImage>(*std::move(code), launch);
    code.error().message = "the object of " + name + " can't be loaded: " + code.error().message;
    return std::unexpected(code.error());
}

}  // namespace kvjit::rt
