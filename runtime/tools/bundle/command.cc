#include "bundle/command.h"

#include <algorithm>

#include "safetensors.h"

namespace kvjit::tool {
namespace {

constexpr std::string_view kCommands[] = {"create", "list", "verify", "extract", "merge", "diff", "sign"};

constexpr const char* kFooter =
    "A bundle is one file of kernels that were made ahead, for any target: a program that adds it to its engine\n"
    "(kvjit_engine_add_bundle) compiles nothing and needs no compiler. docs/bundles.md has the whole story.\n"
    "Examples:\n"
    "  kvjit bundle create kernels.kvjb --specs specs.txt --targets x86-64-v3,x86-64-v4,sm_80\n"
    "  kvjit bundle list kernels.kvjb\n"
    "  kvjit bundle create --help";

constexpr const char* kCreateFooter =
    "A file of specs has one a line; # begins a comment, and braces hold several values or a range:\n"
    "    # Llama 3 8B, int8 cache in pages\n"
    "    op=MultiHeadCacheAttention,head_dim=128,group=4,quant_bit=8,cache_mode=page_table,layout=L2HTD\n"
    "    op=Merge head_dim={64..256..64}\n"
    "docs/ahead.md has the rules. What KVJIT_TRACE_SPECS wrote is such a file.\n"
    "kvjit inspect --help has the fields of a spec. The error of a kernel that a bundle lacks names the line to add.\n"
    "Targets are those that will run it, not this machine: no GPU is needed for sm_80, only NVRTC. A program that\n"
    "several specs share is compiled and stored once. What the disk cache has is not compiled again.\n"
    "The same specs, targets, compiler and kvjit make the same bytes, wherever and in whichever order.\n"
    "Examples:\n"
    "  kvjit bundle create kernels.kvjb --specs specs.txt --targets x86-64-v3,x86-64-v4\n"
    "  kvjit bundle create one.kvjb op=Merge,head_dim=64 --targets host\n"
    "  kvjit bundle create gpu.kvjb --specs specs.txt --targets sm_80,sm_90a -j 8 --key private.pem\n"
    "Exit status: 0 written, 2 bad arguments, specs or targets, or a program that doesn't compile: nothing is written.";

constexpr const char* kListFooter =
    "A line for each program: target, program/variant, bytes of its image, constants. --json has all that is known.\n"
    "Examples:\n"
    "  kvjit bundle list kernels.kvjb | grep decode\n"
    "  kvjit bundle list kernels.kvjb --json\n"
    "Exit status: 0 listed, 1 an entry is damaged, which is said, and the others are listed, 2 bad arguments, or a "
    "file\n"
    "that can't be read or is no bundle.";

constexpr const char* kVerifyFooter =
    "Reads all of each bundle: header, index, every entry's digests, the signature where there is one.\n"
    "Examples:\n"
    "  kvjit bundle verify kernels.kvjb\n"
    "  kvjit bundle verify kernels.kvjb --key 19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1\n"
    "Exit status: 0 all are whole, 1 some is not, or is not signed by the key, 2 a file can't be opened.";

constexpr const char* kExtractFooter =
    "For each program an object or a cubin, its source, its compiler's log and its names: NAME-DIGEST.TARGET.o, .cc, "
    ".log,\n.txt.\n"
    "Examples:\n"
    "  kvjit bundle extract kernels.kvjb --to parts\n"
    "  kvjit bundle extract kernels.kvjb --to parts --match 'attend_decode;'\n"
    "Exit status: 0 written, 2 bad arguments, a bundle that is not whole, no such program, or a file that can't be "
    "written.";

constexpr const char* kMergeFooter =
    "A program that several have is stored once; if its code differs, as two compilers made it, that is an error.\n"
    "Signatures are not taken over. Example:\n"
    "  kvjit bundle merge all.kvjb cpu.kvjb gpu.kvjb\n"
    "Exit status: 0 written, 2 bad arguments, a bundle that is not whole, or code that differs: nothing is written.";

constexpr const char* kDiffFooter =
    "A line for each program that only ONE has (-), only OTHER has (+), or that differs (~), with what differs.\n"
    "Exit status: 0 the same programs and code, 1 not, 2 something could not be read. Example:\n"
    "  kvjit bundle diff yesterday.kvjb today.kvjb";

constexpr const char* kSignFooter =
    "Replaces the signature in the file, and prints the public key: what the engine's option bundle_key takes.\n"
    "Example:\n"
    "  openssl genpkey -algorithm ed25519 -out private.pem\n"
    "  kvjit bundle sign kernels.kvjb --key private.pem\n"
    "Exit status: 0 signed, 2 bad arguments, a key that is none, or a bundle that is not whole: nothing is written.";

constexpr const char* kKeyHelp = "Sign it: a private Ed25519 key in PEM (openssl genpkey -algorithm ed25519)";

}  // namespace

Result<void> check_bundle_command(std::span<const std::string> words) {
    std::string takes = ", expected one of:";
    for (const std::string_view command : kCommands) takes.append(" ").append(command).append(",");
    takes.back() = ';';
    takes += " kvjit help bundle says more";
    if (words.empty()) return fail("a command of kvjit bundle is missing" + takes);
    const bool is_known = std::ranges::find(kCommands, words[0]) != std::end(kCommands);
    if (is_known || words[0] == "--help" || words[0] == "-h") return {};
    return fail(in_quotes(words[0]) + " is no command of kvjit bundle" + takes);
}

BundleCommand::BundleCommand(CLI::App& app)
    : command_(app.add_subcommand("bundle", "Make, look at and sign bundles: kernels made ahead, in one file")),
      creating_(add_create()),
      listing_(add_list()),
      verifying_(add_verify()),
      extracting_(add_extract()),
      merging_(add_merge()),
      diffing_(add_diff()),
      signing_(add_sign()) {
    command_->require_subcommand(1);
    command_->footer(kFooter);
}

int BundleCommand::run() const {
    if (creating_->parsed()) return create_bundle(create_);
    if (listing_->parsed()) return list_bundle(list_);
    if (verifying_->parsed()) return verify_bundles(verify_);
    if (extracting_->parsed()) return extract_bundle(extract_);
    if (merging_->parsed()) return merge_bundles(merge_);
    if (diffing_->parsed()) return diff_bundles(diff_);
    return signing_->parsed() ? sign_bundle(sign_) : kExitBadInput;
}

CLI::App* BundleCommand::add_create() {
    CLI::App* command = command_->add_subcommand("create", "Compile all programs of specs for targets into a bundle");
    command->add_option("OUT", create_.out, "The bundle to write (*.kvjb)")->required();
    command->add_option("SPEC", create_.specs, "field=value pairs, separated by commas: one spec a word");
    command->add_option("--specs", create_.spec_files, "File of specs; - is standard input; may be given again")
        ->allow_extra_args(false);
    command->add_option("--targets", create_.targets, "x86-64-v3, x86-64-v4-amx, sm_80, sm_90a, host, ...; with commas")
        ->allow_extra_args(false)
        ->required();
    command
        ->add_option("--max-combinations", create_.max_combinations,
                     "Combinations that a list of specs may make, at most")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("-j,--jobs", create_.jobs, "Compiles at once; 0: one for each core that it may run on")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    command->add_option("--cache-dir", create_.cache_dir, "Folder of compiled kernels; '' for none");
    command->add_option("--key", create_.key_file, kKeyHelp);
    command->add_flag("--no-sources", create_.without_sources, "Leave out sources and compilers' logs");
    command->add_flag("--quiet,-q", create_.quiet, "Print nothing where all is well");
    command->footer(kCreateFooter);
    return command;
}

CLI::App* BundleCommand::add_list() {
    CLI::App* command = command_->add_subcommand("list", "Show what a bundle holds");
    command->add_option("BUNDLE", list_.bundle, "A bundle")->required();
    command->add_flag("--json", list_.json, "As JSON");
    command->footer(kListFooter);
    return command;
}

CLI::App* BundleCommand::add_verify() {
    CLI::App* command = command_->add_subcommand("verify", "Read all of bundles and compare every digest");
    command->add_option("BUNDLE", verify_.bundles, "Bundles")->required();
    command->add_option("--key", verify_.key, "The public key that must have signed them: 64 hexadecimal digits");
    command->add_flag("--json", verify_.json, "As JSON");
    command->footer(kVerifyFooter);
    return command;
}

CLI::App* BundleCommand::add_extract() {
    CLI::App* command = command_->add_subcommand("extract", "Write a bundle's programs to files");
    command->add_option("BUNDLE", extract_.bundle, "A bundle")->required();
    command->add_option("--to", extract_.folder, "Folder to write to")->capture_default_str();
    command->add_option("--match", extract_.match, "Only programs whose identity has this text in it");
    command->footer(kExtractFooter);
    return command;
}

CLI::App* BundleCommand::add_merge() {
    CLI::App* command = command_->add_subcommand("merge", "Make one bundle of several");
    command->add_option("OUT", merge_.out, "The bundle to write")->required();
    command->add_option("BUNDLE", merge_.bundles, "Bundles to read")->required();
    command->add_option("--key", merge_.key_file, kKeyHelp);
    command->footer(kMergeFooter);
    return command;
}

CLI::App* BundleCommand::add_diff() {
    CLI::App* command = command_->add_subcommand("diff", "Compare two bundles");
    command->add_option("ONE", diff_.one, "A bundle")->required();
    command->add_option("OTHER", diff_.other, "Another one")->required();
    command->footer(kDiffFooter);
    return command;
}

CLI::App* BundleCommand::add_sign() {
    CLI::App* command = command_->add_subcommand("sign", "Sign a bundle in place");
    command->add_option("BUNDLE", sign_.bundle, "A bundle")->required();
    command->add_option("--key", sign_.key_file, kKeyHelp)->required();
    command->footer(kSignFooter);
    return command;
}

}  // namespace kvjit::tool
