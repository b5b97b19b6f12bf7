#include "options.h"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "limits/bandwidth.h"

namespace demo {
namespace {

constexpr int kMaxSteps = 1'000'000;
constexpr int kMaxLayers = 1024;
constexpr int kMaxThreads = 1024;  // what kvjit's pool takes
constexpr int kMaxGpu = 1023;
constexpr std::uint64_t kMaxSeed = std::numeric_limits<std::uint64_t>::max();

template <class T>
T number(const char* text, T least, T most, const std::string& argument) {
    const std::string_view view(text);
    T value{};
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    const bool whole = error == std::errc() && end == view.data() + view.size();
    if (whole && value >= least && value <= most) return value;
    throw std::runtime_error(argument + " is \"" + text + "\"; it takes a number from " + std::to_string(least) +
                             " to " + std::to_string(most));
}

/// Sets place and gpu.
void find_place(Options& options) {
    const std::string& name = options.target;
    if (name == "host" || name.rfind("x86-64", 0) == 0) return;
    options.place = name == "cuda-emulated" ? Place::kEmulated : Place::kGpu;
    if (name == "cuda" || name == "cuda-emulated") return;
    if (name.rfind("cuda:", 0) != 0)
        throw std::runtime_error("--target is \"" + name +
                                 "\"; it takes host, x86-64, x86-64-v2 and so on, cuda, cuda:N, cuda-emulated");
    options.gpu = number(name.c_str() + 5, 0, kMaxGpu, "N of --target cuda:N");
}

/// What the build makes beside this program: CMakeLists.txt.
std::string built_bundle() {
    std::error_code unknown;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
    return (program.parent_path() / "kvjit_demo_kernels.kvjb").string();
}

void set_defaults(Options& options) {
    const bool emulated = options.place == Place::kEmulated;
    if (options.steps == 0) options.steps = emulated ? 4 : 48;
    if (options.layers == 0) options.layers = emulated ? 1 : 4;
    if (options.place == Place::kCpu) {
        // More would take turns: kvjit's pool doesn't make them, and what is compared with it has as many as it.
        const int most = kvjit::limits::usable_cores();
        options.threads = options.threads == 0 ? most : std::min(options.threads, most);
    } else if (options.place != Place::kCpu && options.threads != 0) {
        throw std::runtime_error("--threads is " + std::to_string(options.threads) + "; target " + options.target +
                                 " takes none");
    }
}

}  // namespace

Options parse_options(int argc, char** argv) {
    const option names[] = {{"steps", required_argument, nullptr, 's'},   {"layers", required_argument, nullptr, 'l'},
                            {"threads", required_argument, nullptr, 't'}, {"target", required_argument, nullptr, 'g'},
                            {"bundle", optional_argument, nullptr, 'b'},  {"seed", required_argument, nullptr, 'e'},
                            {"help", no_argument, nullptr, 'h'},          {nullptr, 0, nullptr, 0}};
    Options options;
    for (int found; (found = getopt_long(argc, argv, ":", names, nullptr)) != -1;) {
        switch (found) {
            case 's':
                options.steps = number(optarg, 1, kMaxSteps, "--steps");
                break;
            case 'l':
                options.layers = number(optarg, 1, kMaxLayers, "--layers");
                break;
            case 't':
                options.threads = number(optarg, 0, kMaxThreads, "--threads");
                break;
            case 'g':
                options.target = optarg;
                break;
            case 'b':
                options.bundle = optarg != nullptr ? optarg : built_bundle();
                break;
            case 'e':
                options.seed = number<std::uint64_t>(optarg, 0, kMaxSeed, "--seed");
                break;
            case 'h':
                options.help = true;
                break;
            case ':':
                throw std::runtime_error(std::string(argv[optind - 1]) + " takes a value, and has none");
            default:
                throw std::runtime_error(std::string("no option ") + argv[optind - 1] + "; --help lists them");
        }
    }
    if (optind < argc) throw std::runtime_error(std::string("unexpected argument ") + argv[optind]);
    find_place(options);
    set_defaults(options);
    return options;
}

}  // namespace demo
