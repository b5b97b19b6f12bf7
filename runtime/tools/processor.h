// The processor's name.
#pragma once

#include <string>

namespace kvjit::tool {

/// "AMD EPYC 9654"; empty where the system names none.
std::string processor_name();

}  // namespace kvjit::tool
