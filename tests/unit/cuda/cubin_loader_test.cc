// Cubins become images, or errors, and leave nothing behind.
#include "cuda/cubin_loader.h"

#include <elf.h>

#include "support.h"

using namespace kvjit;
using test::contains;
using test::fake_cubin;
using test::FakeMachine;

namespace {

gen::Error refusal(FakeMachine& machine, std::string_view cubin, const std::string& entry = "kvjit_store") {
    const auto image = rt::load_cubin(machine.driver(), cubin, entry, "store-1234");
    REQUIRE_FALSE(image.has_value());
    CHECK(contains(image.error().message, "store-1234"));
    return image.error();
}

}  // namespace

TEST_CASE("an image has the kernel's handle, and unloads when the last one lets go") {
    FakeMachine machine;
    auto image = rt::load_cubin(machine.driver(), fake_cubin(), "kvjit_store", "store");
    REQUIRE_MESSAGE(image.has_value(), image.error().message);
    CHECK((*image)->entry() != nullptr);
    const rt::ImagePtr second = *image;
    image->reset();
    CHECK(machine.state().libraries.size() == 1);
}

TEST_CASE("an entry that isn't there is refused, and its library unloaded") {
    FakeMachine machine;
    const gen::Error error = refusal(machine, fake_cubin(), "kvjit_other");
    CHECK(error.status == KVJIT_BAD_FILE);
    CHECK(contains(error.message, "no kernel named kvjit_other"));
    CHECK(machine.count("cuLibraryUnload") == 1);
}

TEST_CASE("bytes that are no whole cubin never reach the driver") {
    FakeMachine machine;
    const std::string cubin = fake_cubin();
    for (std::size_t bytes = 0; bytes < cubin.size(); ++bytes) {
        CAPTURE(bytes);
        CHECK(refusal(machine, std::string_view(cubin).substr(0, bytes)).status == KVJIT_BAD_FILE);
    }
    std::string object = cubin;
    reinterpret_cast<Elf64_Ehdr*>(object.data())->e_machine = EM_X86_64;
    CHECK(refusal(machine, object).status == KVJIT_BAD_FILE);
    CHECK(refusal(machine, std::string(4096, 'x')).status == KVJIT_BAD_FILE);
    CHECK(machine.count("cuLibraryLoadData") == 0);
}

TEST_CASE("a table that points far outside is seen") {
    FakeMachine machine;
    for (const std::uint64_t offset : {std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 63}) {
        std::string cubin = fake_cubin();
        reinterpret_cast<Elf64_Ehdr*>(cubin.data())->e_shoff = offset;
        CHECK(refusal(machine, cubin).status == KVJIT_BAD_FILE);
        cubin = fake_cubin();
        reinterpret_cast<Elf64_Shdr*>(cubin.data() + sizeof(Elf64_Ehdr))->sh_size = offset;
        CHECK(refusal(machine, cubin).status == KVJIT_BAD_FILE);
    }
    CHECK(machine.count("cuLibraryLoadData") == 0);
}

TEST_CASE("a driver that is too old for the cubin is an error that says what to do") {
    FakeMachine machine;
    machine.state().fail_at = 1;
    machine.state().fail_code = rt::cuda::kNoBinaryForGpu;
    const gen::Error error = refusal(machine, fake_cubin());
    CHECK(error.status == KVJIT_CUDA_ERROR);
    CHECK(contains(error.message, "CUDA_ERROR_NO_BINARY_FOR_GPU (209)"));
    CHECK(contains(error.message, "update the driver"));
}

TEST_CASE("loading spoils no capture") {
    FakeMachine machine;
    machine.state().capturing = reinterpret_cast<void*>(0x2000);
    const auto image = rt::load_cubin(machine.driver(), fake_cubin(), "kvjit_store", "store");
    CHECK(image.has_value());
}

TEST_CASE("whatever call fails, nothing stays loaded") {
    const int calls = test::fail_everywhere([](FakeMachine& machine) -> gen::Result<void> {
        const auto image = rt::load_cubin(machine.driver(), fake_cubin(), "kvjit_store", "store");
        if (!image) return std::unexpected(image.error());
        return {};
    });
    CHECK(calls == 3);  // load, get, unload
}
