#include "cpu/debugger.h"

#include <llvm/ExecutionEngine/Orc/DebugObjectManagerPlugin.h>

#include <map>
#include <string_view>
#include <utility>

#include "cpu/loaded_objects.h"

namespace kvjit::rt {
namespace {

namespace orc = llvm::orc;

/// ORC's way to gdb's list, which remembers what it has registered.
class Registrar final : public orc::DebugObjectRegistrar {
public:
    llvm::Error registerDebugObject(orc::ExecutorAddrRange object, bool) override {
        const std::string_view bytes(object.Start.toPtr<const char*>(), object.size());
        add_loaded_object(bytes);
        last_ = bytes.data();
        return llvm::Error::success();
    }

    /// The object registered since the last call; null if none was.
    const char* take_last() { return std::exchange(last_, nullptr); }

private:
    const char* last_ = nullptr;
};

/// LLVM 19's plugin frees an object's copy with its code but leaves it in gdb's list: this one removes it first.
class DebuggerPlugin final : public orc::DebugObjectManagerPlugin {
public:
    DebuggerPlugin(orc::ExecutionSession& session, std::unique_ptr<Registrar> registrar, Registrar& same)
        : DebugObjectManagerPlugin(session, std::move(registrar), kRequireDebugSections, kAutoRegisterCode),
          registrar_(same) {}

    llvm::Error notifyEmitted(orc::MaterializationResponsibility& responsibility) override {
        if (llvm::Error error = DebugObjectManagerPlugin::notifyEmitted(responsibility)) return error;
        const char* object = registrar_.take_last();
        return responsibility.withResourceKeyDo([&](orc::ResourceKey key) { objects_[key] = object; });
    }

    llvm::Error notifyRemovingResources(orc::JITDylib& library, orc::ResourceKey key) override {
        if (const auto object = objects_.extract(key)) remove_loaded_object(object.mapped());
        return DebugObjectManagerPlugin::notifyRemovingResources(library, key);
    }

private:
    static constexpr bool kRequireDebugSections = false, kAutoRegisterCode = true;

    Registrar& registrar_;  // owned by the base class
    std::map<orc::ResourceKey, const char*> objects_;
};

}  // namespace

std::shared_ptr<orc::ObjectLinkingLayer::Plugin> make_debugger_plugin(orc::ExecutionSession& session) {
    auto registrar = std::make_unique<Registrar>();
    Registrar& same = *registrar;
    return std::make_shared<DebuggerPlugin>(session, std::move(registrar), same);
}

}  // namespace kvjit::rt
