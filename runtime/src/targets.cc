#include "targets.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cpu/host.h"

namespace kvjit::rt {

gen::Result<const gen::Target*> find_target(std::string_view name) {
    static std::mutex mutex;
    static std::map<std::string, std::unique_ptr<const gen::Target>, std::less<>> targets;
    if (name == "host") return &host_target();
    const std::lock_guard lock(mutex);
    if (const auto it = targets.find(name); it != targets.end()) return it->second.get();
    gen::Result<gen::Target> made = gen::named_target(name);
    if (!made) return std::unexpected(made.error());
    const auto it = targets.emplace(name, std::make_unique<const gen::Target>(*std::move(made))).first;
    return it->second.get();
}

}  // namespace kvjit::rt
