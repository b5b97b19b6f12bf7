// Where NVRTC is looked for. None of this needs one.
#include "cuda/nvrtc_search.h"

#include <algorithm>
#include <filesystem>

#include "cuda/nvrtc_compiler.h"
#include "environment.h"
#include "support.h"
#include "support/temporary_folder.h"

using namespace kvjit;
using test::contains;
using test::TemporaryFolder;
using test::Variable;

namespace {

/// The position of a folder in nvrtc_folders(); fails the test if it isn't there.
std::ptrdiff_t place_of(const std::string& folder) {
    const std::vector<std::string> folders = rt::nvrtc_folders();
    const auto it = std::ranges::find(folders, folder);
    CHECK_MESSAGE(it != folders.end(), folder);
    return it - folders.begin();
}

gen::Error refusal(const std::string& path) {
    const auto compiler = rt::make_nvrtc_compiler({path, {}, false});
    const auto target = gen::named_target("sm_80");
    REQUIRE(target.has_value());
    const auto output = compiler->compile("", "test", *target, rt::CompileStage::kObject);
    REQUIRE_FALSE(output.has_value());
    CHECK(output.error().status == KVJIT_COMPILER_MISSING);
    CHECK(compiler->load_seconds() == 0);
    return output.error();
}

}  // namespace

TEST_CASE("the toolkit's folders come first, then Python's packages, newest Python first") {
    const TemporaryFolder folder;
    const std::string root = folder.path();
    const Variable home("CUDA_HOME", root + "/toolkit"), other("CUDA_PATH", root + "/other");
    const Variable venv("VIRTUAL_ENV", root + "/venv"), conda("CONDA_PREFIX", root + "/conda"), user("HOME", root);
    const std::string in_order[] = {
        "/toolkit/lib64",
        "/toolkit/lib",
        "/other/lib64",
        "/venv/lib/python3.12/site-packages/nvidia/cu13/lib",
        "/venv/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib",
        "/venv/lib/python3/dist-packages/nvidia/cuda_nvrtc/lib",
        "/conda/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
        "/.local/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib",
        "/conda/lib",
    };
    for (const std::string& name : in_order) std::filesystem::create_directories(root + name);
    std::ptrdiff_t last = -1;
    for (const std::string& name : in_order) {
        const std::ptrdiff_t place = place_of(root + name);
        CHECK(place > last);
        last = place;
    }
}

TEST_CASE("folders that don't exist are left out") {
    const TemporaryFolder folder;
    const Variable home("CUDA_HOME", folder.path("toolkit"));
    for (const std::string& found : rt::nvrtc_folders()) CHECK(std::filesystem::is_directory(found));
}

TEST_CASE("the NVRTC of the driver's CUDA is preferred: an older driver can't load a newer one's cubins") {
    CHECK(rt::nvrtc_names(0) == std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12"});
    CHECK(rt::nvrtc_names(13) == rt::nvrtc_names(0));
    CHECK(rt::nvrtc_names(12) == std::vector<std::string>{"libnvrtc.so.12", "libnvrtc.so.13"});
}

TEST_CASE("both names are looked for in every folder before the second one anywhere") {
    const TemporaryFolder folder;
    const Variable chosen("KVJIT_NVRTC", ""), home("CUDA_HOME", folder.path());
    const std::string twelve = folder.write("lib64/libnvrtc.so.12", "");
    const auto found = rt::find_nvrtc("", 12);
    REQUIRE_MESSAGE(found.has_value(), found.error().message);
    CHECK(*found == twelve);
    const std::string thirteen = folder.write("lib/libnvrtc.so.13", "");
    CHECK(*rt::find_nvrtc("", 13) == thirteen);
}

TEST_CASE("KVJIT_NVRTC wins over every place, and a path over it") {
    const TemporaryFolder folder;
    const std::string first = folder.write("one.so", ""), second = folder.write("two.so", "");
    const Variable chosen("KVJIT_NVRTC", first);
    CHECK(*rt::find_nvrtc("", 0) == first);
    CHECK(*rt::find_nvrtc(second, 0) == second);
    const Variable none("KVJIT_NVRTC", "/nowhere/libnvrtc.so.13");
    const auto missing = rt::find_nvrtc("", 0);
    REQUIRE_FALSE(missing.has_value());
    CHECK(contains(missing.error().message, "there is no /nowhere/libnvrtc.so.13"));
}

TEST_CASE("a path that can't be looked at is not said to be missing") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.path("lib"));
    const std::string loop = folder.path("lib/libnvrtc.so.13");
    std::filesystem::create_symlink(loop, loop);
    const std::string why = loop + ": Too many levels of symbolic links";
    {
        const Variable chosen("KVJIT_NVRTC", loop);
        CHECK(contains(rt::find_nvrtc("", 0).error().message, why));
    }
    const Variable chosen("KVJIT_NVRTC", ""), home("CUDA_HOME", folder.path());
    const auto found = rt::find_nvrtc("", 0);
    CHECK((found.has_value() || contains(found.error().message, why)));
}

TEST_CASE("a library is described together with the builtins beside it, each once") {
    const TemporaryFolder folder;
    const auto copy = [&](const char* name) {
        std::filesystem::copy_file(KVJIT_TEST_FAKE_CUDA, folder.path(name));
        return folder.path(name);
    };
    const std::string library = copy("libnvrtc.so.13");
    const auto alone = rt::describe_nvrtc(library);
    REQUIRE(alone.has_value());
    const std::string builtins = copy("libnvrtc-builtins.so.13.0");
    std::filesystem::create_symlink(builtins, folder.path("libnvrtc-builtins.so"));
    const auto both = rt::describe_nvrtc(library);
    REQUIRE(both.has_value());
    CHECK(both->starts_with(*alone));
    CHECK(std::ranges::count(*both, '\n') == 2);
    CHECK(contains(*both, "\nlibnvrtc-builtins build="));
}

TEST_CASE("a copy of NVRTC in another folder is the same compiler, with other builtins another one") {
    const TemporaryFolder folder;
    const auto installed = [&](const std::string& name, const char* builtins) {
        std::filesystem::create_directory(folder.path(name));
        std::filesystem::copy_file(KVJIT_TEST_FAKE_CUDA, folder.path(name + "/libnvrtc.so.13"));
        std::filesystem::copy_file(builtins, folder.path(name + "/libnvrtc-builtins.so.13.0"));
        return folder.path(name + "/libnvrtc.so.13");
    };
    const auto here = rt::describe_nvrtc(installed("here", KVJIT_TEST_FAKE_CUDA));
    REQUIRE(here.has_value());
    CHECK(*rt::describe_nvrtc(installed("there", KVJIT_TEST_FAKE_CUDA)) == *here);
    CHECK(*rt::describe_nvrtc(installed("other", KVJIT_TEST_CUDA_PART)) != *here);
}

TEST_CASE("a missing NVRTC is an error that says what to install") {
    const gen::Error error = refusal("/nowhere/libnvrtc.so.13");
    CHECK(contains(error.message, "/nowhere/libnvrtc.so.13"));
    CHECK(contains(error.message, "apt install cuda-nvrtc"));
    CHECK(contains(error.message, "pip install nvidia-cuda-nvrtc"));
    CHECK(contains(error.message, "KVJIT_NVRTC"));
    const auto identity = rt::make_nvrtc_compiler({"/nowhere/libnvrtc.so.13", {}, false})->identity();
    REQUIRE_FALSE(identity.has_value());
    CHECK(identity.error().status == KVJIT_COMPILER_MISSING);
}

TEST_CASE("a file that is no library, and a library that is no NVRTC, are refused") {
    CHECK(contains(refusal("/etc/passwd").message, "/etc/passwd"));
    CHECK(contains(refusal(KVJIT_TEST_FAKE_CUDA).message, "has no function nvrtcGetErrorString"));
}
