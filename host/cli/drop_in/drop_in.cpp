#include "host/cli/drop_in/drop_in.hpp"

#include <algorithm>
#include <cerrno>

#include "host/cli/completion.hpp"
#include "host/cli/shell/interactive.hpp"

namespace sluice::cli {

namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kName = "dynamomq";

/// DynamoMQ says what is wrong on both streams: scripts read the one, people the other.
int fail(const std::string& error, const std::string& usage, Console& console) {
  console.out("ERROR: " + error + "\n");
  console.flush();
  console.error_text("Error: " + error + "\n" + usage + "\n");
  return kExitFailure;
}

/// The words that are not flags.
Words plain_words(const Words& words) {
  Words plain;
  std::copy_if(words.begin(), words.end(), std::back_inserter(plain),
               [](const std::string& word) { return word.empty() || word.front() != '-'; });
  return plain;
}

/// No failure there either.
int unknown_topic(const Words& topic, Console& console) {
  std::string text = "Unknown help topic [";
  for (const std::string& word : topic) {
    text += (&word == &topic.front() ? "`" : " `") + word + "`";
  }
  console.error_text(text + "]\n" + drop_in_usage(nullptr));
  return kExitOk;
}

int help(const Words& plain, Console& console) {
  const Command* command = plain.empty() ? nullptr : parse_drop_in({plain.front()}).command;
  if (!plain.empty() && command == nullptr) {
    return unknown_topic(plain, console);
  }
  console.out(drop_in_help(command));
  return kExitOk;
}

int completion(const Words& plain, const Command& command, Console& console) {
  const auto script = plain.empty() ? std::nullopt : completion_for(plain.front(), kName);
  if (!script) {
    console.out(drop_in_help(&command));
    return kExitOk;
  }
  console.out(*script);
  return kExitOk;
}

int dispatch(const Words& words, Console& console) {
  if (!words.empty() && words.front() == "__complete") {
    console.out(suggest(drop_in_commands(), Words(words.begin() + 1, words.end())).lines());
    return kExitOk;
  }
  const DropInWords parsed = parse_drop_in(words);
  if (parsed.unknown_command) {
    return fail(parsed.error, "Run 'dynamomq --help' for usage.", console);
  }
  if (!parsed.error.empty()) {
    return fail(parsed.error, drop_in_usage(parsed.command), console);
  }
  if (parsed.wants_help) {
    console.out(drop_in_help(parsed.command));
    return kExitOk;
  }
  Exit end;
  if (parsed.command == nullptr) {
    end = run_interactive(parsed.arguments, console, ShellStyle::dynamomq);
  } else if (parsed.command->run != nullptr) {
    end = parsed.command->run(parsed.arguments, console);
  } else {
    Words plain = plain_words(words);
    plain.erase(plain.begin());
    return parsed.command->name == "help" ? help(plain, console) : completion(plain, *parsed.command, console);
  }
  if (end.code() != kExitOk) {
    return fail(end.lines().empty() ? "internal error" : end.lines().front(), drop_in_usage(parsed.command), console);
  }
  return kExitOk;
}

}  // namespace

bool is_drop_in(std::string_view program) {
  const auto slash = program.rfind('/');
  return (slash == std::string_view::npos ? program : program.substr(slash + 1)) == kName;
}

int run_drop_in(const Words& words, Console& console) {
  const int code = dispatch(words, console);
  console.flush();
  console.end_progress();
  if (console.output_failure() == EPIPE) {
    return kExitBrokenPipe;
  }
  return console.output_failure() != 0 ? kExitFailure : code;
}

}  // namespace sluice::cli
