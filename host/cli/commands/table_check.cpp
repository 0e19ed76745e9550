#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/text/json_writer.hpp"
#include "base/text/visible.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/table_target.hpp"
#include "host/cli/views/output.hpp"
#include "host/stores/dynamodb/table.hpp"

namespace sluice::cli {

namespace {

using queue::dynamomq::OutsideItems;
using queue::table::FindingLevel;
using queue::table::TableFinding;

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

/// So many requests read at most 100 MB, for 12,800 read units: less than a cent's worth.
constexpr std::size_t kMostRequests = 100;

std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 1);
  return {text.data(), end.ptr};
}

/// What a look at keys and at items has found.
struct Examined {
  std::vector<TableFinding> findings;
  bool usable = false;
  std::optional<OutsideItems> items;
};

TableFinding outside_finding(const OutsideItems& items) {
  std::string named;
  for (const auto& item : items.first) {
    named += (named.empty() ? "'" : ", '") + item.id + "' (" + item.why + ")";
  }
  const bool one = items.outside == 1;
  return {FindingLevel::advice,
          std::to_string(items.outside) + (one ? " item is" : " items are") +
              " in neither half of the queue, where no command but `get` and no consumer sees " +
              (one ? "it: " : "them: ") + named + (items.outside > items.first.size() ? ", ..." : ""),
          "give each a queue_type of STANDARD or DLQ and a sent_at, or delete it"};
}

TableFinding not_looked_at(const Error& error) {
  return {FindingLevel::advice, "its items could not be looked at: " + error.message(),
          "allow dynamodb:Scan to have them counted"};
}

TableFinding not_all(std::uint64_t read) {
  return {FindingLevel::advice, "only the first " + std::to_string(read) + " items were looked at",
          "--all-items looks at every one, for half a read unit each 4 KB"};
}

/// What is odd among the items of a leased table. Reported as those of the other layout are.
void add_leased_items(const TableTarget& target, std::size_t most_requests, Examined& examined) {
  auto items = look_at_leased_items(target, most_requests);
  if (!items) {
    examined.findings.push_back(not_looked_at(items.error()));
    return;
  }
  for (TableFinding& finding : items->findings) {
    examined.usable = examined.usable && finding.level == FindingLevel::advice;
    examined.findings.push_back(std::move(finding));
  }
  if (!items->whole) {
    examined.findings.push_back(not_all(items->read));
  }
  examined.items = OutsideItems{.read = items->read,
                                .outside = items->foreign,
                                .ours = 0,
                                .whole = items->whole,
                                .read_units = items->read_units,
                                .first = {}};
}

Examined examine(const TableTarget& target, const dynamo::TableDescription& table, bool all_items) {
  Examined examined{.findings = queue::dynamodb::examine_table(table, target.spec)};
  examined.usable = std::none_of(examined.findings.begin(), examined.findings.end(),
                                 [](const TableFinding& finding) { return finding.level != FindingLevel::advice; });
  if (!examined.usable) {
    return examined;
  }
  if (auto ttl = look_at_ttl(target)) {
    examined.findings.push_back(std::move(*ttl));
  }
  const std::size_t most_requests = all_items ? std::numeric_limits<std::size_t>::max() : kMostRequests;
  if (!target.spec.layout.indexed) {
    add_leased_items(target, most_requests, examined);
    return examined;
  }
  auto items = look_at_items(target, most_requests);
  if (!items) {
    examined.findings.push_back(not_looked_at(items.error()));
    return examined;
  }
  if (items->outside > 0) {
    examined.findings.push_back(outside_finding(*items));
  }
  if (!items->whole) {
    examined.findings.push_back(not_all(items->read));
  }
  examined.items = std::move(*items);
  return examined;
}

void write_items(JsonWriter& json, const OutsideItems& items) {
  json.begin_object();
  json.member("read", items.read);
  json.member("all", items.whole);
  json.member("outside", items.outside);
  json.key("first_outside");
  json.begin_array();
  for (const auto& item : items.first) {
    json.begin_object();
    json.member("id", item.id);
    json.member("why", item.why);
    json.end_object();
  }
  json.end_array();
  json.member("host_records", items.ours);
  json.key("read_units");
  json.word(number(items.read_units));
  json.end_object();
}

std::string json_report(const TableTarget& target, const Examined& examined) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  write_table(json, target);
  json.member("ok", examined.usable);
  json.key("findings");
  json.begin_array();
  for (const TableFinding& finding : examined.findings) {
    json.begin_object();
    json.member("level", to_string(finding.level));
    json.member("what", finding.what);
    json.member("mend", finding.mend);
    json.end_object();
  }
  json.end_array();
  json.key("items");
  if (examined.items) {
    write_items(json, *examined.items);
  } else {
    json.null();
  }
  json.end_object();
  return json.take_line();
}

std::string text_report(const TableTarget& target, const Examined& examined, bool colours) {
  std::string text;
  for (const TableFinding& finding : examined.findings) {
    const std::string level(to_string(finding.level));
    text += (colours ? coloured(level, colour_of(finding.level)) : level) + ": " +
            visible(finding.what + "; " + finding.mend) + "\n";
  }
  if (examined.usable) {
    text += "table " + target.spec.table + with_index(target) +
            (target.spec.layout.indexed ? " holds a queue\n" : " holds leased queues\n");
  }
  return text;
}

Exit check_table(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(target, find_table(arguments));
  std::string region;
  SLUICE_TRY(table, describe_table(*target, region));
  const Examined examined = examine(*target, *table, arguments.has("all-items"));
  if (*output == Output::text) {
    console.out(text_report(*target, examined, console.output_has_colour()));
    return examined.usable ? Exit::ok() : Exit(kExitFailure, std::vector<std::string>{});
  }
  console.out(json_report(*target, examined));
  if (examined.usable) {
    return Exit::ok();
  }
  std::vector<std::string> lines;
  for (const TableFinding& finding : examined.findings) {
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
          "Looks at keys, types, index, projection, state and TTL, and names each difference with its mend. Then looks "
          "for "
          "items that no queue shows, because the index leaves them out, and in a leased table for whatever nobody "
          "could "
          "hand out, half-made ownership items and heartbeats that cannot be: it counts them and names the first ten. "
          "That "
          "reads at most 100 MB, or with --all-items all there is, for half a read unit each 4 KB. Exit 0: the table "
          "can be used, though there may be advice; 1: it cannot, or not yet.",
      .flags = with_table_flags(
          joined({{.name = "all-items", .help = "look at every item, however many there are"}}, output_flags())),
      .examples =
          "sluice table check --queue orders --output text\n"
          "sluice table check --table orders && sluice run",
      .run = check_table,
  };
}

}  // namespace sluice::cli
