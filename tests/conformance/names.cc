#include "conformance/names.h"

#include <doctest/doctest.h>

#include "kvjit/kvjit.h"

namespace kvjit::test {

std::vector<Named> all_names() {
    std::vector<Named> all;
    kvjit_spec_layouts([](void* names, const char* name, const char* order, const char* sets,
                          const char*) { static_cast<std::vector<Named>*>(names)->push_back({name, order, sets}); },
                       &all);
    return all;
}

std::vector<Named> names_of_whole_rows() {
    std::vector<Named> all = all_names();
    CHECK(std::erase_if(all, [](const Named& named) { return named.name == "vllm:rocm"; }) == 1);
    return all;
}

}  // namespace kvjit::test
