#include <algorithm>

#include "host/cli/command.hpp"
#include "host/cli/json_text.hpp"
#include "host/cli/table_target.hpp"
#include "host/cli/text_output.hpp"
#include "host/cli/text_table.hpp"
#include "host/stores/dynamomq/table_findings.hpp"

namespace sluice::cli {

namespace {

using queue::dynamomq::FindingLevel;
using queue::dynamomq::TableFinding;

std::string_view to_string(FindingLevel level) {
  switch (level) {
    case FindingLevel::unfit:
      return "error";
    case FindingLevel::waiting:
      return "wait";
    case FindingLevel::advice:
      break;
  }
  return "advice";
}

Colour colour_of(FindingLevel level) {
  return level == FindingLevel::unfit ? Colour::red : level == FindingLevel::waiting ? Colour::yellow : Colour::none;
}

std::string json_report(const TableTarget& target, const std::vector<TableFinding>& findings, bool usable) {
  JsonText json(JsonText::Layout::indented);
  json.begin_object();
  json.member("table", target.spec.table);
  json.member("index", target.spec.index);
  json.member("ok", usable);
  json.key("findings");
  json.begin_array();
  for (const TableFinding& finding : findings) {
    json.begin_object();
    json.member("level", to_string(finding.level));
    json.member("what", finding.what);
    json.member("mend", finding.mend);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take_line();
}

std::string text_report(const TableTarget& target, const std::vector<TableFinding>& findings, bool usable,
                        bool colours) {
  std::string text;
  for (const TableFinding& finding : findings) {
    const std::string level(to_string(finding.level));
    text += (colours ? coloured(level, colour_of(finding.level)) : level) + ": " + finding.what + "; " + finding.mend +
            "\n";
  }
  if (usable) {
    text += "table " + target.spec.table + " with index " + target.spec.index + " holds a queue\n";
  }
  return text;
}

Exit check_table(const Arguments& arguments, Console& console) {
  const auto output = arguments.output();
  if (output.has_error()) {
    return output.error();
  }
  const auto target = find_table(arguments);
  if (target.has_error()) {
    return target.error();
  }
  std::string region;
  const auto table = describe_table(*target, region);
  if (table.has_error()) {
    return table.error();
  }
  const auto findings = queue::dynamomq::examine_table(*table, target->spec);
  const bool usable = std::none_of(findings.begin(), findings.end(),
                                   [](const TableFinding& finding) { return finding.level != FindingLevel::advice; });
  if (*output == Output::text) {
    console.out(text_report(*target, findings, usable, console.output_has_colour()));
    return usable ? Exit::ok() : Exit(kExitFailure, std::vector<std::string>{});
  }
  console.out(json_report(*target, findings, usable));
  if (usable) {
    return Exit::ok();
  }
  std::vector<std::string> lines;
  for (const TableFinding& finding : findings) {
    if (finding.level != FindingLevel::advice) {
      lines.push_back(finding.what + "; " + finding.mend);
    }
  }
  return {kExitFailure, std::move(lines)};
}

}  // namespace

Command table_check_command() {
  return {
      .name = "table check",
      .group = "Tables",
      .summary = "Compare a table with what a queue needs",
      .usage = "(--queue QUEUE | --table TABLE) [OPTION]...",
      .description =
          "Looks at keys, types, index, projection and state, and names each difference with its mend. Exit 0: "
          "the table can be used, though there may be advice; 1: it cannot, or not yet.",
      .flags = with_place_flags({output_flag()}),
      .examples =
          "sluice table check --queue orders --output text\n"
          "sluice table check --table orders && sluice run",
      .run = check_table,
  };
}

}  // namespace sluice::cli
