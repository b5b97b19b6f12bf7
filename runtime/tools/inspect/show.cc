#include "inspect/show.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "bundle/files.h"
#include "handles.h"
#include "inspect/stages.h"
#include "json.h"
#include "table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

/// A kvjit_sink that appends to the std::string `to`.
void append(void* to, const char* text, size_t size) {
    static_cast<std::string*>(to)->append(text, size);
}

/// "decode, merge, store": the programs whose bits are in `programs`.
std::string names_of(std::uint32_t programs) {
    std::string names;
    for (const auto& [name, bit] : program_names()) {
        if (bit != KVJIT_ALL_PROGRAMS && (bit & programs) != 0) names += (names.empty() ? "" : ", ") + name;
    }
    return names;
}

std::string lacking_program(const InspectOptions& options, std::uint32_t present) {
    return "--program is " + options.program + "; on " + options.target + " this op has " + names_of(present);
}

/// The library tells programs by bits, the user by names.
std::string failure_of(const InspectOptions& options, const kvjit_error& error) {
    if (error.argument != std::string("programs")) return error_text(error);
    return lacking_program(options, static_cast<std::uint32_t>(error.limit));
}

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

/// Fills `images`, with those of some programs even where others fail.
Result<void> find_images(const InspectOptions& options, kvjit_kernel* kernel, std::vector<ShownImage>& images) {
    kvjit_error error;
    kvjit_error_init(&error);
    const std::uint32_t programs = program_names().at(options.program);
    const auto status = kvjit_kernel_images(kernel, programs, take_image, &images, &error);
    if (status == KVJIT_OK) return {};
    if (status != KVJIT_BAD_FILE) return fail(failure_of(options, error));
    const std::string reasons = list_each(programs, kernel, images);
    return reasons.empty() ? Result<void>() : fail(reasons);
}

std::string images_text(const std::vector<ShownImage>& images) {
    std::vector<std::vector<std::string>> rows = {
        {"program", "origin", "bytes", "algorithm", "image", "target", "place"}};
    for (const ShownImage& image : images) {
        const std::string bytes = image.origin == "none" ? "-" : std::to_string(image.object_bytes);
        rows.push_back({image.program, image.origin, bytes,
                        image.variant + " revision " + std::to_string(image.revision), image.name, image.target,
                        image.place});
    }
    return table_text(rows);
}

Json image_json(const ShownImage& image) {
    return {{"program", image.program},    {"variant", image.variant}, {"revision", image.revision},
            {"image", image.name},         {"target", image.target},   {"origin", image.origin},
            {"bytes", image.object_bytes}, {"place", image.place}};
}

/// A kernel with what it was made of.
struct Opened {
    Engine engine;
    Target target;
    Kernel kernel;
    std::vector<ShownImage> images;
};

/// Precondition: the spec is legal, so that an error means that there is no kernel for it.
Result<void> explain(const InspectOptions& options, kvjit_engine* engine, const kvjit_spec& spec,
                     const kvjit_target* target, std::string& shown) {
    kvjit_error error;
    kvjit_error_init(&error);
    const std::uint32_t programs = program_names().at(options.program);
    const auto status = kvjit_engine_explain(engine, &spec, target, programs, append, &shown, &error);
    if (status == KVJIT_BAD_SPEC) {
        return fail("no kernel of this spec exists on " + options.target + ": " + error_text(error));
    }
    if (status != KVJIT_OK) return fail(failure_of(options, error));
    return {};
}

/// Where stages go. Everything is made before anything is written.
class Output {
public:
    explicit Output(const InspectOptions& options, std::size_t images)
        : path_(options.output), is_folder_(path_ && is_folder(*path_, options, images)) {}

    bool has_folder() const { return is_folder_; }
    void add(const std::string& file, const std::string& title, std::string bytes) {
        parts_.push_back({file, title, std::move(bytes)});
    }

    /// `titled`: on standard output, or in one file, each part has its title in front.
    Result<void> write(bool titled) const {
        if (is_folder_) return write_files();
        std::string all;
        for (const Part& part : parts_) all += (titled ? "==== " + part.title + " ====\n" : "") + part.bytes;
        if (path_) return write_file(*path_, all);
        print(all);
        return {};
    }

private:
    struct Part {
        std::string file, title, bytes;
    };

    /// A folder is one that is there, a name that ends with a slash, and the place of several stages.
    static bool is_folder(const std::string& path, const InspectOptions& options, std::size_t images) {
        std::error_code error;
        return path.ends_with('/') || std::filesystem::is_directory(path, error) ||
               (options.stages.size() > 1 && images > 0 && !options.json);
    }

    Result<void> write_files() const {
        std::error_code error;
        std::filesystem::create_directories(*path_, error);
        if (error) return fail(escaped(*path_) + " can't be made: " + error.message());
        for (const Part& part : parts_) {
            if (auto done = write_file((std::filesystem::path(*path_) / part.file).string(), part.bytes); !done)
                return done;
        }
        print(escaped(*path_) + ": " + std::to_string(parts_.size()) + " files\n");
        return {};
    }

    std::optional<std::string> path_;
    bool is_folder_;
    std::vector<Part> parts_;
};

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
    return fail(lacking_program(options, present) + ": name one, or -o FOLDER/");
}

Result<void> show_stages(const InspectOptions& options, const Opened& opened, Output& output) {
    for (const ShownImage& image : opened.images) {
        for (const std::string& stage : options.stages) {
            Result<std::string> text = stage_text(stage, opened.kernel.get(), image, {options.raw, options.lines});
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
            Result<Json> value = stage_of(stage, opened.kernel.get(), image, {options.raw, options.lines});
            if (!value) return fail(image.program + ": " + value.error());
            program[stage] = *std::move(value);
        }
        programs.push_back(std::move(program));
    }
    return programs;
}

Result<void> add_bundles(const InspectOptions& options, kvjit_engine* engine) {
    kvjit_error error;
    kvjit_error_init(&error);
    for (const std::string& path : options.bundles) {
        if (kvjit_engine_add_bundle(engine, path.c_str(), &error) != KVJIT_OK) return fail(error_text(error));
    }
    return {};
}

/// Opens what inspecting takes; the kernel where the algorithms are not asked for.
Result<void> open(const InspectOptions& options, const kvjit_spec& spec, Opened& opened) {
    Result<Target> target = open_target(options.target);
    if (!target) return fail(target.error());
    Result<Engine> engine = open_engine(nullptr);
    if (!engine) return fail(engine.error());
    opened.target = *std::move(target);
    opened.engine = *std::move(engine);
    if (auto added = add_bundles(options, opened.engine.get()); !added) return added;
    if (options.why) return {};
    Result<Kernel> kernel = open_kernel(opened.engine.get(), spec, opened.target.get());
    if (!kernel) return fail(kernel.error());
    opened.kernel = *std::move(kernel);
    return {};
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
    Opened opened;
    if (auto done = open(options, *spec, opened); !done) return done;
    if (options.why) {
        std::string text;
        const auto done = explain(options, opened.engine.get(), *spec, opened.target.get(), text);
        return show_whole(options, text, done);
    }
    const Result<void> found = find_images(options, opened.kernel.get(), opened.images);
    if (options.images && !options.json) return show_whole(options, images_text(opened.images), found);
    if (!found) return found;
    Output output(options, opened.images.size());
    if (auto checked = check_binary(options, output, opened.images); !checked) return checked;
    if (options.json) return show_json(options, *spec, opened);
    if (auto made = show_stages(options, opened, output); !made) return made;
    return output.write(options.stages.size() > 1);
}

struct FieldRow {
    std::string name, takes, def, help;
};

void collect(void* rows, const char* name, const char* takes, const char* def, const char* help) {
    static_cast<std::vector<FieldRow>*>(rows)->push_back({name, takes, def, help});
}

void collect_program(void* programs, std::uint32_t program, const char* name) {
    static_cast<std::map<std::string, std::uint32_t>*>(programs)->emplace(name, program);
}

}  // namespace

std::map<std::string, std::uint32_t> program_names() {
    std::map<std::string, std::uint32_t> programs{{"all", KVJIT_ALL_PROGRAMS}};
    kvjit_program_list(collect_program, &programs);
    return programs;
}

Result<int> inspect(const InspectOptions& options) {
    if (const auto done = show(options); !done) return fail(done.error());
    return kExitOk;
}

Result<std::string> identities(const InspectOptions& options) {
    const Result<kvjit_spec> spec = parse_spec(options.spec);
    if (!spec) return fail(spec.error());
    Opened opened;
    if (auto done = open(options, *spec, opened); !done) return fail(done.error());
    if (auto found = find_images(options, opened.kernel.get(), opened.images); !found) return fail(found.error());
    std::string all;
    for (const ShownImage& image : opened.images) {
        const Result<std::string> text = stage_text("identity", opened.kernel.get(), image, {});
        if (!text) return text;
        all += *text;
    }
    return all;
}

std::string spec_fields_help() {
    std::vector<FieldRow> rows;
    kvjit_spec_fields(collect, &rows);
    std::size_t width = 0;
    for (const FieldRow& row : rows) width = std::max(width, row.name.size());
    std::string help = "field=value, separated by commas or white space; defaults in brackets\n";
    for (const FieldRow& row : rows) {
        const std::string indent(width + 2, ' ');
        help += row.name + std::string(width - row.name.size() + 2, ' ') + row.help + "\n" + indent + row.takes + " [" +
                row.def + "]\n";
    }
    return help;
}

}  // namespace kvjit::tool
