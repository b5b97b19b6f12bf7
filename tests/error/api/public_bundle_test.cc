// What is no bundle, or not one for this engine: an error that names it and says why; the engine goes on.
#include <doctest/doctest.h>

#include <string>

#include "public_call.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

/// Its message.
std::string refusal(const std::string& path) {
    kvjit_error error = new_error();
    CHECK(kvjit_engine_add_bundle(shared_engine(), path.c_str(), &error) == KVJIT_BAD_FILE);
    CHECK(error.status == KVJIT_BAD_FILE);
    CHECK(std::string(error.argument) == "bundle");
    return error.message;
}

TEST_CASE("what is no bundle is refused with its path and the reason") {
    const TemporaryFolder folder;
    CHECK(refusal(folder.path("none")) ==
          "bundle " + folder.path("none") + " can't be opened: No such file or directory");
    CHECK(refusal(folder.path()) == "bundle " + folder.path() + " is not a regular file");
    const std::string text = folder.write("text", std::string(1000, 'x'));
    CHECK(refusal(text) == "bundle " + text + " is no bundle");
    const std::string empty = folder.write("empty", "");
    CHECK(refusal(empty) == "bundle " + empty + " is cut short: it has 0 of 192 bytes");
}

TEST_CASE("memory that is no bundle is refused") {
    kvjit_error error = new_error();
    const std::string bytes(1000, 'x');
    CHECK(kvjit_engine_add_bundle_memory(shared_engine(), bytes.data(), bytes.size(), &error) == KVJIT_BAD_FILE);
    CHECK(std::string(error.message) == "the bundle of 1000 bytes in memory is no bundle");
    CHECK(kvjit_engine_add_bundle_memory(shared_engine(), bytes.data(), 0, &error) == KVJIT_BAD_FILE);
}

TEST_CASE("an engine serves after it has refused a bundle") {
    refusal("/dev/null");
    kvjit_spec spec;
    kvjit_spec_init(&spec);
    const Handle<kvjit_kernel> kernel = kernel_of(spec);
    CHECK(kvjit_kernel_prepare(kernel.get(), KVJIT_PROGRAM_STORE, nullptr) == KVJIT_OK);
}

}  // namespace
}  // namespace kvjit::test
