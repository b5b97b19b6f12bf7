#include "processor.h"

#include <algorithm>
#include <fstream>

namespace kvjit::tool {

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name")) return line.substr(std::min(line.find(": ") + 2, line.size()));
    }
    return "";
}

}  // namespace kvjit::tool
