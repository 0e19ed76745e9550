#include "host/cli/help.hpp"

#include <algorithm>
#include <array>
#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <cctype>
#include <filesystem>
#include <locale>
#include <map>
#include <set>

#include "host/cli/command.hpp"
#include "host/cli/drop_in/drop_in.hpp"
#include "host/cli/options.hpp"
#include "host/cli/views/output.hpp"
#include "host/observe/build_info.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view kAbout = "Sluice runs handler plugins over message queues in DynamoDB or SQLite.";
constexpr std::size_t kWidth = 80;
constexpr std::size_t kGap = 2;
/// An option longer than this has its help on the next line.
constexpr std::size_t kMaxColumn = 26;

void append_row(std::string& out, const std::string& left, std::string_view right, std::size_t column) {
  out += left;
  if (left.size() + kGap > column) {
    out += '\n';
    out.append(column, ' ');
  } else {
    out.append(column - left.size(), ' ');
  }
  append_wrapped(out, right, column, kWidth);
}

std::string with_dashes(const Flag& flag) { return (flag.name == "help" ? "-h, --" : "--") + std::string(flag.name); }

std::string flag_text(const Flag& flag) {
  return "  " + with_dashes(flag) + (flag.value.empty() ? "" : " " + std::string(flag.value));
}

/// A command's options by their headings.
std::vector<std::pair<std::string, std::vector<Flag>>> options_of(const Command& command) {
  std::vector<Flag> own;
  std::vector<Flag> common;
  for (const Flag& flag : command.flags) {
    (flag.common ? common : own).push_back(flag);
  }
  own.push_back({"help", {}, "show this help"});
  std::vector<std::pair<std::string, std::vector<Flag>>> groups{{"Options", std::move(own)}};
  if (!common.empty()) {
    groups.emplace_back("Which queue, and how it is shown", std::move(common));
  }
  return groups;
}

/// Rows of the commands of which `is_listed` is true.
template <typename Predicate>
void append_commands(std::string& out, Predicate is_listed) {
  std::size_t column = 0;
  for (const Command& command : commands()) {
    column = is_listed(command) ? std::max(column, command.name.size() + 2 + kGap) : column;
  }
  for (const Command& command : commands()) {
    if (is_listed(command)) {
      append_row(out, "  " + std::string(command.name), command.summary, column);
    }
  }
}

}  // namespace

/// What stands below the list of commands: where the host file is, and the exit codes.
std::string_view general_notes() {
  return R"(
`sluice help COMMAND` or `sluice COMMAND --help` explains one command, and
`sluice help filters` how to choose messages.

The host file is what --config names, else the SLUICE_CONFIG variable, else
host.toml in this folder, else /etc/sluice/host.toml. Without one a command
works on the DynamoDB table that --table names, or --queue beside --index,
--endpoint or --region, by AWS's usual environment, as DynamoMQ does; beside
a host file --index, --endpoint and --region win over it. Called by the name
dynamomq, this program answers as DynamoMQ's own.

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

std::string listed_commands(bool (*is_listed)(const Command& command)) {
  std::string out;
  std::set<std::string_view> seen;
  for (const Command& first : commands()) {
    if (is_listed(first) && seen.insert(first.group).second) {
      out += "\n" + std::string(first.group) + ":\n";
      append_commands(out, [&](const Command& command) { return command.group == first.group && is_listed(command); });
    }
  }
  return out;
}

std::string general_help() {
  return std::string(kAbout) + "\n\nUsage: sluice COMMAND [OPTION]...\n" +
         listed_commands([](const Command& /*command*/) { return true; }) + std::string(general_notes());
}

std::string command_help(const Command& command) {
  std::string out;
  append_wrapped(out, std::string(command.summary) + ".", 0, kWidth);
  out += "\nUsage: ";
  append_wrapped(out, "sluice " + std::string(command.name) + " " + std::string(command.usage), 7, kWidth);
  if (!command.description.empty()) {
    out += '\n';
    append_wrapped(out, command.description, 0, kWidth);
  }
  const auto groups = options_of(command);
  std::size_t column = 0;
  for (const auto& [heading, flags] : groups) {
    for (const Flag& flag : flags) {
      const std::size_t width = flag_text(flag).size() + kGap;
      column = std::max(column, width > kMaxColumn ? 0 : width);
    }
  }
  for (const auto& [heading, flags] : groups) {
    out += "\n" + heading + ":\n";
    for (const Flag& flag : flags) {
      append_row(out, flag_text(flag), flag.help, column);
    }
  }
  if (!command.examples.empty()) {
    out += "\nExamples:\n";
    for (const std::string& line : lines_of(std::string(command.examples))) {
      out += "  " + line + "\n";
    }
  }
  return out;
}

std::string family_help(std::string_view first_word) {
  const std::string prefix = std::string(first_word) + " ";
  std::string out = "Usage: sluice " + prefix + "COMMAND [OPTION]...\n\nCommands:\n";
  append_commands(out, [&prefix](const Command& command) { return command.name.starts_with(prefix); });
  out += "\n`sluice help " + prefix + "COMMAND` explains one command.\n";
  return out;
}

std::string_view filters_help() {
  return R"(Which messages a command means: their IDs, --all, or a filter. These together
choose what all of them choose:

  --where FILTER      what the filter matches
  --older-than TIME   the same as --where 'age > TIME'
  --error CAUSE       what failed for a cause: the fingerprint that `sluice dlq`
                      shows, or such an error's text
  --error-like TEXT   the same as --where 'error like "*TEXT*"'
  --limit N           no more than N of them

A filter:

  receive_count > 3 and data.type = "invoice"
  (state = "delayed" or age > 10m) and not attributes.tenant in ("acme", "zeta")
  error like "*timeout*" and exists(data.items[0].sku)

Fields:
  id, content_type, group        text
  queue_type                     "STANDARD" or "DLQ"
  state, also as status          "ready", "in_flight" or "delayed"
  priority                       "critical", "high", "normal" or "low"
  receive_count                  a number, as RECEIVES shows it
  version                        a number
  age                            a duration: the time since created_at
  created_at, updated_at, sent_at, received_at, invisible_until_at
                                 times
  error (failure.error), failure.fingerprint, failure.handler, failure.host
                                 text, where the last attempt failed
  failure.attempts, failure.failed_at
                                 a number, a time
  attributes.NAME                text
  data, data.items[0].sku, data["odd key"]
                                 the body, or a part of it where it is JSON

Operators:
  = != < <= > >=                 numbers compare exactly; different kinds are
                                 unequal, and neither is less
  like, ~                        * stands for any text, \* for a star
  in (A, B), exists(FIELD)
  and, or, not, ( )              `not` binds more than `and`, `and` than `or`

Values: text in " or ', numbers, true, false, null, durations such as 250ms,
30s, 10m, 2h, 7d, and times such as 2026-01-31 or 2026-01-31T12:00:00Z.

A comparison with something that the message does not have is false, whatever
the operator: data.tenant != "acme" leaves out messages without a tenant, and
not data.tenant = "acme" takes them.
)";
}

// Pages for man(1).

namespace {

/// Text as troff shows it unchanged: a dash that can be pasted into a shell, no character or line that is a request.
std::string plain(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    line_begins = c == '\n';
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return out;
}

/// "sluice-table-create" for the command "table create".
std::string page_name(std::string_view command) {
  return "sluice-" + boost::replace_all_copy(std::string(command), " ", "-");
}

/// The first letter small, as the NAME line of a page has it; not where a name begins the sentence.
std::string in_a_sentence(std::string_view summary) {
  std::string text(summary);
  const bool capital_word = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) != 0;
  if (!text.empty() && !capital_word) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

std::string in_capitals(std::string_view text) {
  return boost::to_upper_copy(std::string(text), std::locale::classic());
}

/// Collects a page, request by request.
class PageText {
 public:
  PageText(std::string_view name, std::string_view summary) {
    text_ = ".TH " + plain(in_capitals(name)) + " 1 \"\" \"Sluice " + observe::build_info().version + "\" \"Sluice\"\n";
    section("Name");
    text_ += plain(name) + " \\- " + plain(in_a_sentence(summary)) + "\n";
  }

  void section(std::string_view heading) { text_ += ".SH \"" + plain(in_capitals(heading)) + "\"\n"; }
  void group(std::string_view heading) { text_ += ".SS \"" + plain(heading) + "\"\n"; }

  void synopsis(std::string_view bold, std::string_view rest) {
    section("Synopsis");
    text_ += ".B " + plain(bold) + "\n" + plain(rest) + "\n";
  }

  /// Paragraphs separated by empty lines; a line break within one stays.
  void paragraphs(std::string_view text) {
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      text_ += line.empty() ? ".PP\n" : plain(line) + "\n" + (text.empty() || text.front() == '\n' ? "" : ".br\n");
    }
  }
  void term(std::string_view bold, std::string_view italic, std::string_view meaning) {
    text_ +=
        ".TP\n\\fB" + plain(bold) + "\\fR" + (italic.empty() ? std::string() : " \\fI" + plain(italic) + "\\fR") + "\n";
    paragraphs(meaning);
  }
  void flags(const std::vector<Flag>& flags) {
    for (const Flag& flag : flags) {
      term(with_dashes(flag), flag.value, flag.help);
    }
  }
  void as_it_stands(std::string_view text) { text_ += ".nf\n" + plain(text) + "\n.fi\n"; }
  void see_also(std::vector<std::string> pages) {
    section("See also");
    for (std::size_t at = 0; at < pages.size(); ++at) {
      text_ += ".BR " + plain(pages[at]) + " (1)" + (at + 1 < pages.size() ? " ,\n" : "\n");
    }
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string page_of(const Command& command) {
  const std::string name = page_name(command.name);
  PageText page(name, command.summary);
  page.synopsis("sluice " + std::string(command.name), command.usage);
  page.section("Description");
  page.paragraphs(command.description.empty() ? std::string(command.summary) + "." : std::string(command.description));
  for (const auto& [heading, flags] : options_of(command)) {
    page.section(heading);
    page.flags(flags);
  }
  if (!command.examples.empty()) {
    page.section("Examples");
    page.as_it_stands(command.examples);
  }
  page.see_also({"sluice"});
  return page.take();
}

std::string general_page() {
  PageText page("sluice", "Run handler plugins over message queues in DynamoDB or SQLite");
  page.synopsis("sluice", "COMMAND [OPTION]...");
  page.section("Description");
  page.paragraphs(kAbout);
  page.section("Commands");
  std::string_view group;
  std::vector<std::string> pages{"dynamomq"};
  for (const Command& command : commands()) {
    if (command.group != group) {
      group = command.group;
      page.group(group);
    }
    page.term("sluice " + std::string(command.name), "", std::string(command.summary) + ".");
    pages.push_back(page_name(command.name));
  }
  page.section("Notes");
  page.as_it_stands(general_notes().substr(1));
  page.see_also(std::move(pages));
  return page.take();
}

std::string drop_in_page() {
  PageText page("dynamomq", "operate queues on DynamoDB as DynamoMQ's tool does");
  page.synopsis("dynamomq", "[COMMAND] [FLAG]...");
  page.section("Description");
  page.paragraphs(
      "The program sluice under another name, in the place of DynamoMQ's own tool: the same commands, JSON, exit codes "
      "and interactive mode. Without a command it is interactive.");
  page.section("Commands");
  for (const Command& command : drop_in_commands()) {
    page.term(command.name, "", command.summary);
    page.flags(command.flags);
  }
  page.section("Help");
  page.as_it_stands(drop_in_help(nullptr));
  page.see_also({"sluice"});
  return page.take();
}

/// Where a shell looks for the completion of a program, below share/: what stands before its name, and behind it. bash
/// and fish go by the file's name.
using CompletionPlace = std::array<const char*, 3>;
constexpr std::array<CompletionPlace, 3> kPlaces{{{"bash", "bash-completion/completions/", ""},
                                                  {"zsh", "zsh/site-functions/_", ""},
                                                  {"fish", "fish/vendor_completions.d/", ".fish"}}};

}  // namespace

Exit write_share_files(const std::string& folder) {
  const std::filesystem::path root = folder;
  std::map<std::string, std::string> files{{"man/man1/sluice.1", general_page()},
                                           {"man/man1/dynamomq.1", drop_in_page()}};
  for (const Command& command : commands()) {
    files.emplace("man/man1/" + page_name(command.name) + ".1", page_of(command));
  }
  for (const auto& [shell, before, behind] : kPlaces) {
    for (const std::string program : {"sluice", "dynamomq"}) {
      files.emplace(before + program + behind, completion_for(shell, program).value_or(""));
    }
  }
  for (const auto& [name, text] : files) {
    SLUICE_PASS_ON(write_file(root / name, text));
  }
  return Exit::ok();
}

}  // namespace sluice::cli
