#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <cctype>
#include <span>

#include "base/ranges.hpp"
#include "host/cli/help.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/words.hpp"

namespace sluice::cli {

namespace {

using Words = std::vector<std::string>;

bool is_sign(const std::string& word) { return word == "=" || word == ":"; }

/// The words as they were typed: of "--output=json" and "outbox:mail" bash gives the parts. An equals sign stands
/// between an option and its value.
Words as_typed(const Words& words) {
  Words typed;
  bool joins = false;
  for (const std::string& word : words) {
    const bool is_equals = word == "=" && !typed.empty();
    const bool is_colon = word == ":" && !typed.empty();
    if (is_equals) {
      typed.emplace_back();
    } else if (is_colon || (joins && (!word.empty() || typed.back().empty()))) {
      typed.back() += word;
    } else {
      typed.push_back(word);
    }
    joins = is_equals || is_colon;
  }
  return typed;
}

void add_if_begun(Suggestions& found, std::string text, std::string_view meaning, std::string_view typed) {
  if (text.starts_with(typed)) {
    found.words.push_back({std::move(text), std::string(meaning)});
  }
}

/// The second words of names whose first is `family`.
Suggestions suggest_member(const std::vector<Command>& commands, const std::string& family, const std::string& typed) {
  Suggestions found;
  for (const Command& command : commands) {
    if (command.name.starts_with(family + " ")) {
      add_if_begun(found, std::string(command.name.substr(family.size() + 1)), command.summary, typed);
    }
  }
  return found;
}

/// The first words; of a family it says which commands that has, as in "create, check".
Suggestions suggest_command(const std::vector<Command>& commands, const std::string& typed) {
  Suggestions found;
  for (std::string& first : first_words(commands)) {
    const Command* const command = find_command(commands, first);
    std::string meaning(command == nullptr ? "" : command->summary);
    for (const auto& member : suggest_member(commands, first, {}).words) {
      meaning += (meaning.empty() ? "" : ", ") + member.text;
    }
    if (command != nullptr && !typed.empty() && !first.starts_with(typed)) {
      first = command->alias;
    }
    add_if_begun(found, std::move(first), meaning, typed);
  }
  if (find_command(commands, "help") == nullptr) {
    add_if_begun(found, "help", "Explain a command", typed);
  }
  return found;
}

/// Of each kind of value that the option takes: of "QUEUE", and other words in capitals, what stands for them; among
/// several, small words are the values themselves.
Suggestions suggest_value(const Flag& flag, const Arguments& line, const KnownNames& known, const std::string& typed) {
  Suggestions found;
  const Words kinds = split(flag.value, '|');
  for (const std::string& kind : kinds) {
    found.files = found.files || kind == "FILE" || kind == "FOLDER" || kind == "X.so";
    Words words;
    if (std::isupper(static_cast<unsigned char>(kind.front())) != 0) {
      words = known(kind == "NAME" && flag.name == "job" ? "JOB" : kind, line);
    } else if (kinds.size() > 1 && std::islower(static_cast<unsigned char>(kind.front())) != 0) {
      words = {kind};
    }
    for (std::string& word : words) {
      add_if_begun(found, std::move(word), {}, typed);
    }
  }
  return found;
}

/// The words as they stand behind "--name=". A file's name is left to the shell, which does not look behind the sign.
Suggestions with_beginning(Suggestions found, const std::string& beginning) {
  for (Suggestions::Word& word : found.words) {
    word.text.insert(0, beginning);
  }
  return found;
}

Suggestions suggest_flag(const Arguments& line, const std::string& typed) {
  Suggestions found;
  for (const Flag& flag : line.command()->flags) {
    if (!line.has(flag.name) || flag.repeated) {
      add_if_begun(found, "--" + std::string(flag.name), flag.help, typed);
    }
  }
  add_if_begun(found, "--help", "show its help", typed);
  return found;
}

// Each asks the program itself what may come next. NAME stands for the program.

constexpr std::string_view kBash = R"(# bash completion of NAME. For every shell: save it as
# ~/.local/share/bash-completion/completions/NAME; for this one: source <(NAME completion bash)
_NAME_complete() {
  local text meaning
  COMPREPLY=()
  while IFS=$'\t' read -r text meaning; do
    if [[ $text == :files ]]; then
      compopt -o default 2>/dev/null
    else
      COMPREPLY+=("$text")
    fi
  done < <(NAME __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _NAME_complete NAME
)";

constexpr std::string_view kZsh = R"(#compdef NAME
# zsh completion of NAME. For every shell: save it as _NAME in a folder of $fpath;
# for this one: source <(NAME completion zsh)
_NAME() {
  local line text
  local -a found
  for line in "${(@f)$(NAME __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :files ]]; then
      _files
    elif [[ -n $line ]]; then
      text=${line%%$'\t'*}
      if [[ $line == *$'\t'* ]]; then
        found+=("${text//:/\\:}:${line#*$'\t'}")
      else
        found+=("${text//:/\\:}")
      fi
    fi
  done
  if (( ${#found} )); then
    _describe NAME found
  fi
}
if [[ ${funcstack[1]} == _NAME ]]; then
  _NAME "$@"
else
  compdef _NAME NAME
fi
)";

constexpr std::string_view kFish = R"fish(# fish completion of NAME. For every shell: save it as
# ~/.config/fish/completions/NAME.fish; for this one: NAME completion fish | source
function __NAME_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (NAME __complete $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c NAME -f -a "(__NAME_complete)"
)fish";

// A completer that offers nothing leaves the word to PowerShell's own, which knows files.
constexpr std::string_view kPowerShell =
    R"(# PowerShell completion of NAME. For every session: put the next line, without its mark, into $PROFILE
# NAME completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName NAME -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
    Where-Object { $_.Extent.StartOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
  if ($wordToComplete -eq '') {
    $words += $(if ($PSVersionTable.PSVersion -ge [version]'7.3') { '' } else { '""' })
  }
  NAME __complete @words 2>$null | Where-Object { $_ -and $_ -ne ':files' } | ForEach-Object {
    $text, $meaning = $_ -split "`t", 2
    if (-not $meaning) { $meaning = $text }
    [System.Management.Automation.CompletionResult]::new($text, $text, 'ParameterValue', $meaning)
  }
}
)";

std::string for_program(std::string_view script, std::string_view program) {
  return boost::replace_all_copy(std::string(script), "NAME", program);
}

/// A script, and the command that prints it.
struct Script {
  std::string_view text;
  std::string_view name;
  std::string_view summary;
  std::string_view example;
};
constexpr std::array<Script, 4> kScripts{
    {{kBash, "completion bash", "Print the script that completes sluice's words in bash",
      "source <(sluice completion bash)"},
     {kZsh, "completion zsh", "Print the script that completes sluice's words in zsh",
      "source <(sluice completion zsh)"},
     {kFish, "completion fish", "Print the script that completes sluice's words in fish",
      "sluice completion fish | source"},
     {kPowerShell, "completion powershell", "Print the script that completes sluice's words in PowerShell",
      "sluice completion powershell | Out-String | Invoke-Expression"}}};

}  // namespace

std::string Suggestions::lines() const {
  std::string text;
  for (const Word& word : words) {
    text += word.text + (word.meaning.empty() ? "" : "\t" + word.meaning) + "\n";
  }
  return text + (files ? ":files\n" : "");
}

std::optional<std::string> nearest_word(const std::string& wrong, const std::vector<std::string>& known) {
  constexpr std::size_t kShortest = 2;
  if (auto near = config::nearest(wrong, known)) {
    return near;
  }
  const std::string* const begun = find_where(known, [&wrong](const std::string& word) {
    return std::min(word.size(), wrong.size()) >= kShortest && (word.starts_with(wrong) || wrong.starts_with(word));
  });
  return begun == nullptr ? std::nullopt : std::optional(*begun);
}

Words first_words(const std::vector<Command>& commands) {
  Words words;
  for (const Command& command : commands) {
    const std::string_view first = command.name.substr(0, command.name.find(' '));
    if (std::find(words.begin(), words.end(), first) == words.end()) {
      words.emplace_back(first);
    }
  }
  return words;
}

Words names_in_files(std::string_view kind, const Arguments& line) {
  if (kind != "QUEUE" && kind != "JOB" && kind != "QUEUE-OR-JOB") {
    return {};
  }
  const auto host = load_host_file(line);
  if (host.has_error()) {
    return {};
  }
  const auto jobs = config::load_job_files(*host, config::process_environment()).jobs;
  const auto queues = kind.starts_with("QUEUE") ? config::queue_names(*host, jobs) : std::set<std::string>();
  Words names(queues.begin(), queues.end());
  if (kind.ends_with("JOB")) {
    for (const config::JobConfig& job : jobs) {
      if (std::find(names.begin(), names.end(), job.name) == names.end()) {
        names.push_back(job.name);
      }
    }
  }
  return names;
}

namespace {

Suggestions suggest_word(const std::vector<Command>& commands, const Words& words, const RememberedOptions& remembered,
                         const KnownNames& known) {
  const std::string& typed = words.back();
  Words before(words.begin(), words.end() - 1);
  const bool helps = !before.empty() && before.front() == "help";
  before.erase(before.begin(), before.begin() + (helps ? 1 : 0));
  const Command* command = helps ? nullptr : find_command(commands, before);
  if (command == nullptr) {
    Suggestions found = before.empty()       ? suggest_command(commands, typed)
                        : before.size() == 1 ? suggest_member(commands, before[0], typed)
                                             : Suggestions();
    const bool filters =
        std::any_of(commands.begin(), commands.end(), [](const Command& one) { return one.flag("where") != nullptr; });
    if (helps && before.empty() && filters) {  // which DynamoMQ does not have
      add_if_begun(found, std::string(kFiltersTopic), "How to choose messages", typed);
    }
    return found;
  }
  const auto line = Arguments::of_line(*command, std::span(before).subspan(command->name_words()));
  Arguments whole = line;
  whole.add(line.unsaid(remembered));
  if (const auto equals = typed.find('='); typed.starts_with("--") && equals != std::string::npos) {
    const Flag* flag = command->flag(option_name(typed));
    return flag == nullptr || flag->value.empty()
               ? Suggestions()
               : with_beginning(suggest_value(*flag, whole, known, typed.substr(equals + 1)),
                                typed.substr(0, equals + 1));
  }
  if (const Flag* flag = line.awaited()) {
    return suggest_value(*flag, whole, known, typed);
  }
  const bool queue_first = queue_stands_first(command->flags) && line.plain().empty();
  const Flag* operand = typed.starts_with("-") ? nullptr : next_operand(*command, line);
  if (operand != nullptr && queue_first && !whole.has("queue") && command->flag("queue") != nullptr) {
    operand = command->flag("queue");
  }
  Suggestions found = operand == nullptr ? Suggestions() : suggest_value(*operand, whole, known, typed);
  if (found.words.empty() && !found.files) {
    return suggest_flag(line, typed);
  }
  return found;
}

}  // namespace

Suggestions suggest(const std::vector<Command>& commands, const Words& given, const RememberedOptions& remembered,
                    const KnownNames& known) {
  const Words words = given.empty() ? Words(1) : as_typed(given);
  Suggestions found = suggest_word(commands, words, remembered, known);
  // Of a word that bash has cut it takes the end alone.
  const std::size_t end = given.empty() || is_sign(given.back()) ? 0 : given.back().size();
  for (Suggestions::Word& word : found.words) {
    word.text.erase(0, words.back().size() - end);
  }
  return found;
}

std::optional<std::string> completion_for(std::string_view shell, std::string_view program) {
  const std::string name = "completion " + std::string(shell);
  const Script* const found = find_where(kScripts, [&name](const Script& script) { return script.name == name; });
  return found == nullptr ? std::nullopt : std::optional(for_program(found->text, program));
}

std::vector<Command> completion_commands() {
  std::vector<Command> commands;
  commands.reserve(kScripts.size());
  for (const Script& script : kScripts) {
    commands.push_back(
        {.name = script.name,
         .summary = script.summary,
         .description = "Completes commands, options, files, and the names of queues that the host file knows.",
         .examples = script.example,
         .run = [text = script.text](const Arguments& /*arguments*/, Console& console) {
           return print(for_program(text, "sluice"), console);
         }});
  }
  return commands;
}

}  // namespace sluice::cli
