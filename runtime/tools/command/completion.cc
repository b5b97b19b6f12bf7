#include "command/completion.h"

#include <map>
#include <vector>

#include "command/options.h"
#include "generator/spec.h"
#include "kvjit/kvjit.h"

namespace kvjit::tool {
namespace {

/// `case` branches of a shell function: what to look up, what to print for it.
class Cases {
public:
    explicit Cases(std::string function) : function_(std::move(function)) {}

    void add(const std::string& key, const std::string& value) {
        if (!value.empty()) branches_ += "    '" + key + "') printf '%s' '" + value + "' ;;\n";
    }
    std::string text() const { return function_ + "() {\n    case \"$1\" in\n" + branches_ + "    esac\n}\n"; }

private:
    std::string function_, branches_;
};

std::string spaced(const auto& words) {
    std::string text;
    for (const auto& word : words) text.append(text.empty() ? "" : " ").append(word);
    return text;
}

void add_name(void* names, const char* name, const char*) {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
}

/// "words summary source", "targets", "files": the kind of a value, and its words.
std::string offer_text(const Option& option) {
    switch (option.offer) {
        case Offer::kNothing:
            return option.is_flag() ? "" : "nothing";
        case Offer::kWords:
            return "words " + spaced(option.words);
        case Offer::kFiles:
            return "files";
        case Offer::kFolders:
            return "folders";
        case Offer::kTargets: {
            std::vector<std::string> names;
            kvjit_target_list(add_name, &names);
            return "words " + spaced(names);
        }
        case Offer::kSpec:
            return "spec";
    }
    return "";
}

std::vector<std::string> names_of(const Option& option) {
    std::vector<std::string> names;
    for (const std::string& name : option.parsed->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option.parsed->get_snames()) names.push_back("-" + name);
    return names;
}

/// The functions that both shells ask.
class Tables {
public:
    explicit Tables(const Command& root) : root_(root) {
        add(root, "");
        for (const gen::Field& field : gen::spec_fields()) {
            fields_.emplace_back(field.name);
            values_.add(std::string(field.name), spaced(field.values()));
        }
    }

    std::string text() const {
        Cases fields("_kvjit_fields");
        fields.add("", spaced(fields_));
        return commands_.text() + options_.text() + takes_.text() + fields.text() + values_.text();
    }

private:
    /// `path`: "bundle create"
    void add(const Command& command, const std::string& path) {
        if (!command.is_group()) return add_options(command, path);
        std::vector<std::string> names;
        for (const Command* each : command.commands) {
            names.emplace_back(each->name);
            add(*each, path.empty() ? names.back() : path + " " + names.back());
        }
        commands_.add(path, spaced(names));
    }

    void add_options(const Command& command, const std::string& path) {
        Options options(root_, {&command, "kvjit " + path});
        command.declare(options);
        std::vector<std::string> names = {"--help"};
        std::string last;  // a positional that takes all that is left is the last one
        for (const Option& option : options.all()) {
            if (option.is_positional()) last = offer_text(option);
            if (option.is_positional()) takes_.add(path + " " + std::to_string(++positionals_[path]), last);
            for (const std::string& name : names_of(option)) {
                names.push_back(name);
                takes_.add(path + " " + name, offer_text(option));
            }
        }
        takes_.add(path + " last", last);
        options_.add(path, spaced(names));
    }

    const Command& root_;
    Cases commands_{"_kvjit_commands"}, options_{"_kvjit_options"}, takes_{"_kvjit_takes"}, values_{"_kvjit_values"};
    std::vector<std::string> fields_;
    std::map<std::string, int> positionals_;
};

/// Sets `candidates`, `kind` and `joins` (nothing follows a candidate at once) for the word `current` after `before`.
/// Arrays begin at 1 in zsh and at 0 in bash, so they are only walked.
constexpr const char* kCommon = R"sh(
_kvjit_find() {
    local word commands name piece called='' previous='' count=0
    candidates=() kind='' joins=''
    for word in "$@"; do
        commands=$(_kvjit_commands "$called")
        case " $commands " in
        *" $word "*) called="${called:+$called }$word" previous='' count=0 ;;
        *)
            case "$word" in
            -*) previous=$word ;;
            *) if [ -z "$(_kvjit_takes "$called $previous")" ]; then count=$((count + 1)); fi; previous='' ;;
            esac
            ;;
        esac
    done
    case "$current" in --*=*) previous=${current%%=*} kept="${current%%=*}=" current=${current#*=} ;; esac
    commands=$(_kvjit_commands "$called")
    if [ -n "$commands" ]; then
        candidates=($(printf '%s' "$commands --help" | tr ' ' '\n'))
        return
    fi
    kind=''
    if [ -n "$previous" ]; then kind=$(_kvjit_takes "$called $previous"); fi
    if [ -z "$kind" ]; then
        case "$current" in
        -*) candidates=($(_kvjit_options "$called" | tr ' ' '\n')); return ;;
        esac
        kind=$(_kvjit_takes "$called $((count + 1))")
        if [ -z "$kind" ]; then kind=$(_kvjit_takes "$called last"); fi
    fi
    case "$kind" in
    words*)
        kept="$kept${current%"${current##*,}"}"
        candidates=($(printf '%s' "${kind#words }" | tr ' ' '\n'))
        kind=words
        ;;
    spec)
        kept="$kept${current%"${current##*,}"}"
        piece=${current##*,}
        case "$piece" in
        *=*)
            name=${piece%%=*}
            kept="$kept$name="
            candidates=($(_kvjit_values "$name" | tr ' ' '\n'))
            ;;
        *)
            joins=yes
            for name in $(_kvjit_fields '' | tr ' ' '\n'); do candidates+=("$name="); done
            ;;
        esac
        ;;
    esac
}
)sh";

constexpr const char* kBash = R"sh(
_kvjit() {
    local line=${COMP_LINE:0:COMP_POINT} current='' kept='' kind='' joins='' candidates=() all=() word broken
    read -ra all <<<"$line"
    case "$line" in *[![:space:]]) current=${all[${#all[@]} - 1]}; unset "all[${#all[@]}-1]" ;; esac
    local whole=$current
    _kvjit_find "${all[@]:1}"
    COMPREPLY=()
    case "$kind" in
    files) compopt -o default 2>/dev/null; return ;;
    folders) compopt -o dirnames 2>/dev/null; return ;;
    esac
    if [ -n "$joins" ]; then compopt -o nospace 2>/dev/null; fi
    broken=${whole%"${whole##*[=:]}"}  # readline takes = and : for the end of a word
    for word in "${candidates[@]}"; do
        word=$kept$word
        case "$word" in "$whole"*) COMPREPLY+=("${word#"$broken"}") ;; esac
    done
}
complete -F _kvjit kvjit
)sh";

constexpr const char* kZsh = R"sh(
_kvjit() {
    local current=${words[CURRENT]} kept='' kind='' joins='' word
    local -a candidates all
    for word in "${(@)words[2,CURRENT-1]}"; do all+=("$word"); done
    _kvjit_find "${all[@]}"
    case "$kind" in
    files) _files; return ;;
    folders) _files -/; return ;;
    esac
    if [ -n "$joins" ]; then
        compadd -Q -S '' -- "${kept}${^candidates[@]}"
    else
        compadd -Q -- "${kept}${^candidates[@]}"
    fi
}
if [ "${funcstack[1]}" = _kvjit ]; then _kvjit "$@"; else compdef _kvjit kvjit; fi
)sh";

}  // namespace

std::string bash_completion(const Command& root) {
    return "# Completion of kvjit for bash, made by: kvjit completion bash\n" + Tables(root).text() + kCommon + kBash;
}

std::string zsh_completion(const Command& root) {
    return "#compdef kvjit\n# Completion of kvjit for zsh, made by: kvjit completion zsh\n" + Tables(root).text() +
           kCommon + kZsh;
}

}  // namespace kvjit::tool
