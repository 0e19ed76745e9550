#include "host/cli/manual.hpp"

#include <algorithm>
#include <cctype>

#include "host/cli/command.hpp"
#include "host/cli/drop_in/drop_in.hpp"
#include "host/cli/help.hpp"
#include "host/observe/build_info.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view kAbout = "Sluice runs handler plugins over message queues in DynamoDB or SQLite.";
constexpr std::string_view kDropInSummary = "operate queues on DynamoDB as DynamoMQ's tool does";

/// Text as troff shows it unchanged: a dash that can be pasted into a shell, no character or line that is a request.
std::string plain(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    line_begins = c == '\n';
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// "sluice-table-create" for the command "table create".
std::string page_name(std::string_view command) {
  std::string name = "sluice-" + std::string(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string reference(std::string_view page) { return ".BR " + plain(page) + " (1)"; }

/// The first letter small, as the NAME line of a page has it; not where a name begins the sentence.
std::string in_a_sentence(std::string_view summary) {
  std::string text(summary);
  const bool capital_word = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) != 0;
  if (!text.empty() && !capital_word) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

/// Collects a page, request by request.
class PageText {
 public:
  PageText(std::string_view name, std::string_view summary) {
    std::string title(name);
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
    text_ = ".TH " + plain(title) + " 1 \"\" \"Sluice " + observe::build_info().version + "\" \"Sluice\"\n";
    section("Name");
    text_ += plain(name) + " \\- " + plain(in_a_sentence(summary)) + "\n";
  }

  void section(std::string_view heading) {
    std::string title(heading);
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
    text_ += ".SH \"" + plain(title) + "\"\n";
  }
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
  void as_it_stands(std::string_view text) { text_ += ".nf\n" + plain(text) + "\n.fi\n"; }
  void see_also(std::vector<std::string> pages) {
    section("See also");
    for (std::size_t at = 0; at < pages.size(); ++at) {
      text_ += reference(pages[at]) + (at + 1 < pages.size() ? " ,\n" : "\n");
    }
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_flags(PageText& page, const Command& command, bool common) {
  for (const Flag& flag : command.flags) {
    if (flag.common == common && !flag.help.empty()) {
      page.term("--" + std::string(flag.name), flag.value, flag.help);
    }
  }
}

ManualPage page_of(const Command& command) {
  const std::string name = page_name(command.name);
  PageText page(name, command.summary);
  page.synopsis("sluice " + std::string(command.name), command.usage);
  page.section("Description");
  page.paragraphs(command.description.empty() ? std::string(command.summary) + "." : std::string(command.description));
  page.section("Options");
  write_flags(page, command, false);
  page.term("-h, --help", "", "show this help");
  if (std::any_of(command.flags.begin(), command.flags.end(), [](const Flag& flag) { return flag.common; })) {
    page.section("Which queue, and how it is shown");
    write_flags(page, command, true);
  }
  if (!command.examples.empty()) {
    page.section("Examples");
    page.as_it_stands(command.examples);
  }
  page.see_also({"sluice"});
  return {.file = name + ".1", .text = page.take()};
}

ManualPage general_page() {
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
  return {.file = "sluice.1", .text = page.take()};
}

ManualPage drop_in_page() {
  PageText page("dynamomq", kDropInSummary);
  page.synopsis("dynamomq", "[COMMAND] [FLAG]...");
  page.section("Description");
  page.paragraphs(
      "The program sluice under another name, in the place of DynamoMQ's own tool: the same commands, JSON, exit codes "
      "and interactive mode. Without a command it is interactive.");
  page.section("Commands");
  for (const Command& command : drop_in_commands()) {
    page.term(command.name, "", command.summary);
    write_flags(page, command, false);
  }
  page.section("Help");
  page.as_it_stands(drop_in_help(nullptr));
  page.see_also({"sluice"});
  return {.file = "dynamomq.1", .text = page.take()};
}

}  // namespace

std::vector<ManualPage> manual() {
  std::vector<ManualPage> pages{general_page(), drop_in_page()};
  for (const Command& command : commands()) {
    pages.push_back(page_of(command));
  }
  return pages;
}

}  // namespace sluice::cli
