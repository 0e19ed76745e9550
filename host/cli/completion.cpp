#include "host/cli/completion.hpp"

#include <algorithm>

#include "host/cli/command.hpp"

namespace sluice::cli {

namespace {

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
  constexpr std::string_view kName = "NAME";
  std::string text;
  while (!script.empty()) {
    const auto end = std::min(script.find(kName), script.size());
    text += script.substr(0, end);
    script.remove_prefix(end);
    if (!script.empty()) {
      text += program;
      script.remove_prefix(kName.size());
    }
  }
  return text;
}

template <const std::string_view& script>
Exit print(const Arguments& /*arguments*/, Console& console) {
  console.out(for_program(script, "sluice"));
  return Exit::ok();
}

Command make(std::string_view name, std::string_view summary, std::string_view examples,
             Exit (*run)(const Arguments&, Console&)) {
  return {
      .name = name,
      .group = "Shell",
      .summary = summary,
      .usage = "",
      .description = "Completes commands, options, files, and the names of queues that the host file knows.",
      .flags = {},
      .examples = examples,
      .run = run,
  };
}

}  // namespace

std::optional<std::string> completion_for(std::string_view shell, std::string_view program) {
  if (shell == "bash") {
    return for_program(kBash, program);
  }
  if (shell == "zsh") {
    return for_program(kZsh, program);
  }
  if (shell == "fish") {
    return for_program(kFish, program);
  }
  if (shell == "powershell") {
    return for_program(kPowerShell, program);
  }
  return std::nullopt;
}

Command completion_bash_command() {
  return make("completion bash", "Print the script that completes sluice's words in bash",
              "source <(sluice completion bash)", print<kBash>);
}

Command completion_zsh_command() {
  return make("completion zsh", "Print the script that completes sluice's words in zsh",
              "source <(sluice completion zsh)", print<kZsh>);
}

Command completion_fish_command() {
  return make("completion fish", "Print the script that completes sluice's words in fish",
              "sluice completion fish | source", print<kFish>);
}

Command completion_powershell_command() {
  return make("completion powershell", "Print the script that completes sluice's words in PowerShell",
              "sluice completion powershell | Out-String | Invoke-Expression", print<kPowerShell>);
}

}  // namespace sluice::cli
