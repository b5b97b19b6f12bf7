// The build has compiled the tree's own templates: it can't tell anything of others.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace {

constexpr int kSkipped = 77;  // for CTest

/// Whether KVJIT_TEMPLATE_DIR names other templates than those that were compiled.
bool names_others() {
    const char* folder = std::getenv("KVJIT_TEMPLATE_DIR");
    std::error_code none;
    return folder != nullptr && *folder != '\0' && !std::filesystem::equivalent(folder, KVJIT_TEMPLATES, none);
}

}  // namespace

int main(int argc, char** argv) {
    if (names_others()) {
        std::printf("SKIP: KVJIT_TEMPLATE_DIR is %s; these tests are built of %s\n", std::getenv("KVJIT_TEMPLATE_DIR"),
                    KVJIT_TEMPLATES);
        return kSkipped;
    }
    return doctest::Context(argc, argv).run();
}
