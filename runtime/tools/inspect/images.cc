#include "inspect/images.h"

#include "bundle/files.h"
#include "handles.h"
#include "inspect/programs.h"
#include "table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

void take_image(void* to, const kvjit_image_info* info) {
    static const char* const origins[] = {"none", "compiled", "disk", "bundle"};
    static_cast<std::vector<ShownImage>*>(to)->push_back(
        {info->program, names_of(info->program), info->variant, info->target, info->name, origins[info->origin],
         escaped(info->place), info->revision, info->object_bytes, info->block_threads, info->shared_bytes});
}

/// Lists each program separately, since some may fail. Returns why they did.
std::string list_each(std::uint32_t programs, kvjit_kernel* kernel, std::vector<ShownImage>& images) {
    kvjit_error error;
    kvjit_error_init(&error);
    std::string reasons;
    for (const auto& [name, bit] : program_names()) {
        if (bit == KVJIT_ALL_PROGRAMS || (bit & programs) == 0) continue;
        const auto status = kvjit_kernel_images(kernel, bit, take_image, &images, &error);
        const bool is_lacking = status == KVJIT_BAD_ARGUMENT;  // the op lacks the program
        if (status != KVJIT_OK && !is_lacking)
            reasons += (reasons.empty() ? "" : "; ") + name + ": " + error_text(error);
    }
    return reasons;
}

}  // namespace

std::string Asked::lacking(std::uint32_t present) const {
    return "--program is " + program + "; on " + target + " this op has " + names_of(present);
}

std::string Asked::failure(const kvjit_error& error) const {
    if (error.argument != std::string("programs")) return error_text(error);
    return lacking(static_cast<std::uint32_t>(error.limit));
}

Result<void> find_images(const Asked& asked, kvjit_kernel* kernel, std::vector<ShownImage>& images) {
    kvjit_error error;
    kvjit_error_init(&error);
    const auto status = kvjit_kernel_images(kernel, asked.programs, take_image, &images, &error);
    if (status == KVJIT_OK) return {};
    if (status != KVJIT_BAD_FILE) return fail(asked.failure(error));
    const std::string reasons = list_each(asked.programs, kernel, images);
    return reasons.empty() ? Result<void>() : fail(reasons);
}

std::string images_text(const std::vector<ShownImage>& images) {
    std::vector<std::vector<std::string>> rows = {
        {"program", "origin", "bytes", "algorithm", "image", "target", "place"}};
    for (const ShownImage& image : images) {
        const std::string bytes = image.origin == "none" ? "-" : std::to_string(image.object_bytes);
        rows.push_back({image.program, image.origin, bytes,
                        image.variant + " revision " + std::to_string(image.revision), image.name,
                        target_label(image.target), image.place});
    }
    return table_text(rows);
}

Json image_json(const ShownImage& image) {
    return {{"program", image.program},    {"variant", image.variant}, {"revision", image.revision},
            {"image", image.name},         {"target", image.target},   {"origin", image.origin},
            {"bytes", image.object_bytes}, {"place", image.place}};
}

}  // namespace kvjit::tool
