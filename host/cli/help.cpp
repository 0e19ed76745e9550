#include "host/cli/help.hpp"

#include <algorithm>

namespace sluice::cli {

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kGap = 2;
/// An option longer than this has its help on the next line.
constexpr std::size_t kMaxColumn = 26;

/// The length of the word that `text` begins with; what stands in brackets is one word if it fits on a line.
std::size_t word_length(std::string_view text, std::size_t room) {
  const auto end = std::min(text.find_first_of(" \n"), text.size());
  if (text.empty() || (text.front() != '[' && text.front() != '(')) {
    return end;
  }
  const auto close = text.find(text.front() == '[' ? ']' : ')');
  if (close == std::string_view::npos) {
    return end;
  }
  const auto group = std::min(text.find_first_of(" \n", close), text.size());
  return group <= room ? group : end;
}

/// Breaks text at spaces so that lines fit, each indented; existing line breaks stay.
void append_wrapped(std::string& out, std::string_view text, std::size_t indent) {
  std::size_t column = indent;
  bool first = true;
  while (!text.empty()) {
    const auto end = word_length(text, kWidth - indent);
    const auto word = text.substr(0, end);
    if (!first && column + 1 + word.size() > kWidth) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
      first = true;
    }
    if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first = false;
    const bool line_break = end < text.size() && text[end] == '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line_break) {
      out += '\n';
      const bool empty_line = !text.empty() && text.front() == '\n';
      if (!empty_line) {
        out.append(indent, ' ');
      }
      column = indent;
      first = true;
    }
  }
  out += '\n';
}

void append_row(std::string& out, const std::string& left, std::string_view right, std::size_t column) {
  out += left;
  if (left.size() + kGap > column) {
    out += '\n';
    out.append(column, ' ');
  } else {
    out.append(column - left.size(), ' ');
  }
  append_wrapped(out, right, column);
}

std::string flag_text(const Flag& flag) {
  std::string text = "  --" + std::string(flag.name);
  if (!flag.value.empty()) {
    text += " " + std::string(flag.value);
  }
  return text;
}

void append_flags(std::string& out, const Command& command, bool common, std::size_t column) {
  for (const Flag& flag : command.flags) {
    if (flag.common == common) {
      append_row(out, flag_text(flag), flag.help, column);
    }
  }
}

void append_lines(std::string& out, std::string_view lines) {
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    out += "  " + std::string(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

void append_commands(std::string& out, const std::vector<const Command*>& listed) {
  std::size_t column = 0;
  for (const Command& command : commands()) {
    column = std::max(column, command.name.size() + 2 + kGap);
  }
  for (const Command* command : listed) {
    append_row(out, "  " + std::string(command->name), command->summary, column);
  }
}

}  // namespace

std::string_view general_notes() {
  return R"(
`sluice help COMMAND` or `sluice COMMAND --help` explains one command, and
`sluice help filters` how to choose messages.

The host file is what --config names, else the SLUICE_CONFIG variable, else
host.toml in this folder, else /etc/sluice/host.toml. Without one, and with
--table (or --endpoint or --index, where neither --queue nor --config is
given), a command works on a DynamoDB table by AWS's usual environment, as
DynamoMQ does; beside a host file --index, --endpoint and --region win over
it. Called by the name dynamomq, this program answers as DynamoMQ's own.

Exit codes:
  0    success; for run: drained, nothing left behind
  1    the command failed: no such message, store down, ...
  64   wrong command line
  70   internal error
  75   run stopped hard and left work behind
  78   wrong configuration
  130  a bulk command was interrupted and says how far it came
)";
}

std::string general_help() {
  std::string out = "Sluice runs handler plugins over message queues in DynamoDB or SQLite.\n\n";
  out += "Usage: sluice COMMAND [OPTION]...\n";
  std::vector<std::string_view> groups;
  for (const Command& command : commands()) {
    if (std::find(groups.begin(), groups.end(), command.group) == groups.end()) {
      groups.push_back(command.group);
    }
  }
  for (const auto group : groups) {
    out += "\n" + std::string(group) + ":\n";
    std::vector<const Command*> members;
    for (const Command& command : commands()) {
      if (command.group == group) {
        members.push_back(&command);
      }
    }
    append_commands(out, members);
  }
  out += general_notes();
  return out;
}

std::string command_help(const Command& command) {
  std::string out;
  append_wrapped(out, std::string(command.summary) + ".", 0);
  out += "\nUsage: ";
  append_wrapped(out, "sluice " + std::string(command.name) + " " + std::string(command.usage), 7);
  if (!command.description.empty()) {
    out += '\n';
    append_wrapped(out, command.description, 0);
  }
  std::size_t column = 14;
  bool has_common = false;
  for (const Flag& flag : command.flags) {
    const std::size_t width = flag_text(flag).size() + kGap;
    column = std::max(column, width > kMaxColumn ? 0 : width);
    has_common = has_common || flag.common;
  }
  out += "\nOptions:\n";
  append_flags(out, command, false, column);
  append_row(out, "  -h, --help", "show this help", column);
  if (has_common) {
    out += "\nWhich queue, and how it is shown:\n";
    append_flags(out, command, true, column);
  }
  if (!command.examples.empty()) {
    out += "\nExamples:\n";
    append_lines(out, command.examples);
  }
  return out;
}

std::string family_help(std::string_view first_word) {
  const std::string prefix = std::string(first_word) + " ";
  std::vector<const Command*> members;
  for (const Command& command : commands()) {
    if (command.name.substr(0, prefix.size()) == prefix) {
      members.push_back(&command);
    }
  }
  std::string out = "Usage: sluice " + prefix + "COMMAND [OPTION]...\n\nCommands:\n";
  append_commands(out, members);
  out += "\n`sluice help " + prefix + "COMMAND` explains one command.\n";
  return out;
}

}  // namespace sluice::cli
