// What demo/ says to bad arguments, and that its read loop gives up cleanly where threads are scarce.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <getopt.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "limits/bandwidth.h"
#include "options.h"

namespace {

/// The refusal; "" if there is none.
std::string refusal_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "kvjit_demo");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    optind = 0;  // getopt begins anew
    try {
        demo::parse_options(static_cast<int>(arguments.size()), argv.data());
        return "";
    } catch (const std::runtime_error& refusal) {
        return refusal.what();
    }
}

/// Threads of this process.
std::ptrdiff_t living_threads() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

/// In a process whose address space has room for few stacks of 1 GiB: 0 if the loop gave up and left no thread.
int give_up_in_little_memory() {
    constexpr rlim_t kStack = rlim_t{1} << 30, kSpace = rlim_t{8} << 30;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, kStack) != 0) return 1;
    if (pthread_setattr_default_np(&attributes) != 0) return 1;
    const rlimit limit{kSpace, kSpace};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    try {
        kvjit::limits::ReadLoop(1 << 20, 64).measure();
        return 2;
    } catch (const std::runtime_error& failure) {
        if (std::string(failure.what()).find(" of 64 threads") == std::string::npos) return 3;
    }
    return living_threads() == 1 ? 0 : 4;
}

}  // namespace

TEST_CASE("a number beyond its limits is refused with argument, value and limits") {
    CHECK(refusal_of({"--threads", "99999"}) == "--threads is \"99999\"; it takes a number from 0 to 1024");
    CHECK(refusal_of({"--threads", "1025"}) == "--threads is \"1025\"; it takes a number from 0 to 1024");
    CHECK(refusal_of({"--threads=-1"}) == "--threads is \"-1\"; it takes a number from 0 to 1024");
    CHECK(refusal_of({"--layers", "1025"}) == "--layers is \"1025\"; it takes a number from 1 to 1024");
    CHECK(refusal_of({"--layers", "0"}) == "--layers is \"0\"; it takes a number from 1 to 1024");
    CHECK(refusal_of({"--steps", "1000001"}) == "--steps is \"1000001\"; it takes a number from 1 to 1000000");
    CHECK(refusal_of({"--steps", "4x"}) == "--steps is \"4x\"; it takes a number from 1 to 1000000");
    CHECK(refusal_of({"--target", "cuda:1024"}) ==
          "N of --target cuda:N is \"1024\"; it takes a number from 0 to 1023");
    CHECK(refusal_of({"--seed", "18446744073709551616"}) ==
          "--seed is \"18446744073709551616\"; it takes a number from 0 to 18446744073709551615");
}

TEST_CASE("what is no option, lacks its value or is no target is refused by name") {
    CHECK(refusal_of({"--steps", "4", "--fast"}) == "no option --fast; --help lists them");
    CHECK(refusal_of({"--steps"}) == "--steps takes a value, and has none");
    CHECK(refusal_of({"fast"}) == "unexpected argument fast");
    CHECK(refusal_of({"--target", "gpu"}) ==
          "--target is \"gpu\"; it takes host, x86-64, x86-64-v2 and so on, cuda, cuda:N, cuda-emulated");
    CHECK(refusal_of({"--target", "cuda", "--threads", "2"}) == "--threads is 2; target cuda takes none");
}

TEST_CASE("numbers at their limits are taken, and a bundle with and without a name") {
    CHECK(refusal_of({"--threads", "1024", "--layers", "1024", "--steps", "1000000"}) == "");
    CHECK(refusal_of({"--threads", "0", "--layers", "1", "--steps", "1", "--seed", "18446744073709551615"}) == "");
    CHECK(refusal_of({"--target", "cuda:1023"}) == "");
    CHECK(refusal_of({"--bundle"}) == "");
    CHECK(refusal_of({"--bundle=kernels.kvjb"}) == "");
}

TEST_CASE("where a thread can't be started, the read loop joins the others and throws") {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(give_up_in_little_memory());
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}
