// Programs that use AMX's tiles: loaded only with the permission to.
#include "images/images.h"

namespace kvjit::rt {

TilePermission::State Images::tiles() const {
    return options_.tiles != nullptr ? options_.tiles->state() : TilePermission::State::kRefused;
}

gen::Result<void> Images::permit_tiles(const gen::Target& target) {
    const gen::Result<Backend*> backend = this->backend(target);
    if (!backend) return std::unexpected(backend.error());
    if (auto runs = (*backend)->check_machine(target); !runs) return runs;
    const auto refuse = [&](const std::string& reason) {
        return gen::fail(KVJIT_BAD_TARGET, "target", "target is " + target.name() + "; " + reason);
    };
    if (options_.tiles == nullptr) return refuse("the engine's options forbid AMX (amx = 0)");
    const std::expected<void, std::string> permitted = options_.tiles->ask();
    if (permitted) return {};
    std::call_once(refusal_told_, [&] { options_.log(KVJIT_LOG_WARNING, "AMX is not used: " + permitted.error()); });
    return refuse(permitted.error());
}

gen::Result<void> Images::permit(const Wanted& wanted) {
    return wanted.program().uses_tiles ? permit_tiles(wanted.target()) : gen::Result<void>{};
}

}  // namespace kvjit::rt
