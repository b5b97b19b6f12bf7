#include "load.h"

namespace demo {
namespace {

constexpr Load kCpu{384, 512, 1 << 15, 16, {1000, 2600}, {8, 200}, 10, {100, 1500}, {4, 40}};
/// A step's keys and values are many times what a GPU's cache holds.
constexpr Load kGpu{3840, 2048, 1 << 17, 96, {2000, 4000}, {8, 200}, 24, {500, 4000}, {4, 40}};
/// Some pages a sequence, prompts that end in the first half of the steps, decoding then.
constexpr Load kEmulated{48, 128, 1 << 13, 4, {200, 900}, {4, 20}, 2, {40, 120}, {4, 20}};

}  // namespace

const Load& load_of(Place place) {
    return place == Place::kCpu ? kCpu : place == Place::kGpu ? kGpu : kEmulated;
}

}  // namespace demo
