// JSON that commands print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kvjit::tool {

using Json = nlohmann::ordered_json;

/// In lines. JSON is UTF-8; a file may hold anything, so other bytes are replaced.
inline std::string dump(const Json& json) {
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace kvjit::tool
