#include "inspect/show.h"

#include <algorithm>
#include <set>

#include "bundle/files.h"
#include "handles.h"
#include "inspect/images.h"
#include "inspect/output.h"
#include "inspect/programs.h"
#include "inspect/stages.h"
#include "json.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

/// A kvjit_sink that appends to the std::string `to`.
void append(void* to, const char* text, size_t size) {
    static_cast<std::string*>(to)->append(text, size);
}

Asked asked_of(const InspectOptions& options) {
    return {program_names().at(options.program), options.program, options.target};
}

/// A kernel with what it was made of.
struct Opened {
    kvjit_spec spec;
    Engine engine;
    Target target;
    Kernel kernel;
    std::vector<ShownImage> images;

    ShownKernel shown() const { return {kernel.get(), spec}; }
};

/// Opens what inspecting takes; the kernel where the algorithms are not asked for.
Result<void> open(const InspectOptions& options, Opened& opened) {
    Result<Target> target = open_target(options.target);
    if (!target) return fail(target.error());
    Result<Engine> engine = open_engine({.cache_dir = {}, .bundles = options.bundles});
    if (!engine) return fail(engine.error());
    opened.target = *std::move(target);
    opened.engine = *std::move(engine);
    if (options.why) return {};
    Result<Kernel> kernel = open_kernel(opened.engine.get(), opened.spec, opened.target.get());
    if (!kernel) return fail(kernel.error());
    opened.kernel = *std::move(kernel);
    return {};
}

/// Precondition: the spec is legal, so that an error means that there is no kernel for it.
Result<void> explain(const InspectOptions& options, kvjit_engine* engine, const kvjit_spec& spec,
                     const kvjit_target* target, std::string& shown) {
    kvjit_error error;
    kvjit_error_init(&error);
    const Asked asked = asked_of(options);
    const auto status = kvjit_engine_explain(engine, &spec, target, asked.programs, append, &shown, &error);
    if (status == KVJIT_BAD_SPEC) {
        return fail("no kernel of this spec exists on " + options.target + ": " + error_text(error));
    }
    if (status != KVJIT_OK) return fail(asked.failure(error));
    return {};
}

/// Bytes go to one file each, and not into a terminal, a JSON text or between titles.
Result<void> check_binary(const InspectOptions& options, const Output& output, const std::vector<ShownImage>& images) {
    const bool has_binary = std::ranges::any_of(options.stages, is_binary_stage);
    if (!has_binary || output.has_folder()) return {};
    if (options.json) return fail("--json has no room for an object's bytes: -o FOLDER, without --json");
    if (!options.output && output_is_terminal()) return fail("an object is no text for a terminal: -o FILE, or > FILE");
    if (options.stages.size() > 1) return fail("several stages, one of them an object, take -o FOLDER");
    if (images.size() == 1) return {};
    std::uint32_t present = 0;
    for (const ShownImage& image : images) present |= image.bit;
    return fail(asked_of(options).lacking(present) + ": name one, or -o FOLDER/");
}

Result<void> show_stages(const InspectOptions& options, const Opened& opened, Output& output) {
    std::set<std::string> told;  // what one text says once; files stand alone
    for (const ShownImage& image : opened.images) {
        if (output.has_folder()) told.clear();
        for (const std::string& stage : options.stages) {
            Result<std::string> text = stage_text(stage, opened.shown(), image, {options.raw, options.lines}, told);
            if (!text) return fail(image.program + ": " + text.error());
            output.add(stage_file(stage, image), image.program + ": " + stage, *std::move(text));
        }
    }
    return {};
}

Result<Json> json_of(const InspectOptions& options, const Opened& opened) {
    Json programs = Json::array();
    for (const ShownImage& image : opened.images) {
        Json program = image_json(image);
        for (const std::string& stage : options.stages) {
            Result<Json> value = stage_of(stage, opened.shown(), image, {options.raw, options.lines});
            if (!value) return fail(image.program + ": " + value.error());
            program[stage] = *std::move(value);
        }
        programs.push_back(std::move(program));
    }
    return programs;
}

/// Writes what there is, also where a part of it failed.
Result<void> show_whole(const InspectOptions& options, const std::string& text, Result<void> done) {
    if (!options.output) {
        print(text);
    } else if (done) {
        return write_file(*options.output, text);
    }
    return done;
}

Result<void> show_json(const InspectOptions& options, const kvjit_spec& spec, const Opened& opened) {
    const Result<std::string> canonical = spec_text(spec);
    if (!canonical) return fail(canonical.error());
    Result<Json> programs = json_of(options, opened);
    if (!programs) return fail(programs.error());
    return show_whole(options,
                      dump({{"spec", *canonical}, {"target", options.target}, {"programs", *std::move(programs)}}), {});
}

Result<void> show(const InspectOptions& options) {
    const Result<kvjit_spec> spec = parse_spec(options.spec);
    if (!spec) return fail(spec.error());
    Opened opened{.spec = *spec, .engine = {}, .target = {}, .kernel = {}, .images = {}};
    if (auto done = open(options, opened); !done) return done;
    if (options.why) {
        std::string text;
        const auto done = explain(options, opened.engine.get(), *spec, opened.target.get(), text);
        return show_whole(options, text, done);
    }
    const Result<void> found = find_images(asked_of(options), opened.kernel.get(), opened.images);
    if (options.images && !options.json) return show_whole(options, images_text(opened.images), found);
    if (!found) return found;
    const bool has_several = options.stages.size() > 1 && !opened.images.empty() && !options.json;
    Output output(options.output, has_several);
    if (auto checked = check_binary(options, output, opened.images); !checked) return checked;
    if (options.json) return show_json(options, *spec, opened);
    if (auto made = show_stages(options, opened, output); !made) return made;
    return output.write(options.stages.size() > 1);
}

}  // namespace

Result<int> inspect(const InspectOptions& options) {
    if (const auto done = show(options); !done) return fail(done.error());
    return kExitOk;
}

Result<std::string> identities(const InspectOptions& options) {
    const Result<kvjit_spec> spec = parse_spec(options.spec);
    if (!spec) return fail(spec.error());
    Opened opened{.spec = *spec, .engine = {}, .target = {}, .kernel = {}, .images = {}};
    if (auto done = open(options, opened); !done) return fail(done.error());
    if (auto found = find_images(asked_of(options), opened.kernel.get(), opened.images); !found)
        return fail(found.error());
    std::string all;
    std::set<std::string> told;
    for (const ShownImage& image : opened.images) {
        const Result<std::string> text = stage_text("identity", opened.shown(), image, {}, told);
        if (!text) return text;
        all += *text;
    }
    return all;
}

}  // namespace kvjit::tool
