#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "base/text/visible.hpp"
#include "dynamo/endpoints/endpoint_rules.hpp"
#include "host/cli/command.hpp"
#include "host/cli/table_target.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/terraform.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/outside_items.hpp"
#include "host/stores/leased/table_items.hpp"

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

/// Looks for items that no queue shows, in a table of DynamoMQ's layout.
Result<OutsideItems> look_at_items(TableSession& session, const TableTarget& target, std::size_t most_requests,
                                   std::vector<TableFinding>& findings) {
  // Each request has a time-out of its own.
  SLUICE_TRY(items, queue::dynamomq::find_outside_items(session.client(),
                                                        {target.spec.table, target.spec.table, target.spec.index, {}},
                                                        most_requests, Deadline::never()));
  if (items->outside > 0) {
    findings.push_back(outside_finding(*items));
  }
  return items;
}

/// What is odd among the items of a leased table. Reported as those of the other layout are.
Result<OutsideItems> look_at_leased_items(TableSession& session, const TableTarget& target, std::size_t most_requests,
                                          std::vector<TableFinding>& findings) {
  SLUICE_TRY(items, queue::leased::examine_items(session.client(), target.spec.table, most_requests,
                                                 session.clock().wall_now(), Deadline::never()));
  std::move(items->findings.begin(), items->findings.end(), std::back_inserter(findings));
  return OutsideItems{.read = items->read,
                      .outside = items->foreign,
                      .ours = 0,
                      .whole = items->whole,
                      .read_units = items->read_units,
                      .first = {}};
}

bool is_usable(const std::vector<TableFinding>& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const TableFinding& finding) { return finding.level == FindingLevel::advice; });
}

Examined examine(TableSession& session, const TableTarget& target, const dynamo::TableDescription& table,
                 bool all_items) {
  Examined examined{.findings = queue::dynamodb::examine_table(table, target.spec)};
  std::vector<TableFinding>& findings = examined.findings;
  examined.usable = is_usable(findings);
  if (!examined.usable) {
    return examined;
  }
  if (auto ttl = queue::dynamodb::examine_ttl(session.client(), target.spec, session.deadline())) {
    findings.push_back(std::move(*ttl));
  }
  const std::size_t most_requests = all_items ? std::numeric_limits<std::size_t>::max() : kMostRequests;
  const std::size_t before = findings.size();
  const auto look = target.spec.layout.indexed ? look_at_items : look_at_leased_items;
  auto items = look(session, target, most_requests, findings);
  if (!items) {
    findings.push_back(not_looked_at(items.error()));
    return examined;
  }
  examined.usable = is_usable({findings.begin() + static_cast<std::ptrdiff_t>(before), findings.end()});
  if (!items->whole) {
    findings.push_back(not_all(items->read));
  }
  examined.items = std::move(*items);
  return examined;
}

void write_items(JsonWriter& json, const OutsideItems& items) {
  put_object(json, "read", items.read, "all", items.whole, "outside", items.outside, "first_outside",
             array_of(items.first,
                      [](JsonWriter& each, const auto& item) { put_object(each, "id", item.id, "why", item.why); }),
             "host_records", items.ours, "read_units", figure(items.read_units, 1));
}

std::string json_report(const TableTarget& target, const Examined& examined) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  put_table(json, target);
  put_members(
      json, "ok", examined.usable, "findings",
      array_of(examined.findings,
               [](JsonWriter& each, const TableFinding& finding) {
                 put_object(each, "level", to_string(finding.level), "what", finding.what, "mend", finding.mend);
               }),
      "items",
      [&examined](JsonWriter& member) { examined.items ? write_items(member, *examined.items) : member.null(); });
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
    text += "table " + target.spec.table + target.with_index() +
            (target.spec.layout.indexed ? " holds a queue\n" : " holds leased queues\n");
  }
  return text;
}

Exit check_table(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(target, find_table(arguments));
  SLUICE_TRY(session, TableSession::open(*target));
  SLUICE_TRY(table, session->describe());
  const Examined examined = examine(*session, *target, *table, arguments.has("all-items"));
  if (*output == Output::text) {
    console.out(text_report(*target, examined, console.output_has_colour()));
    return examined.usable ? Exit::ok() : Exit::silent(kExitFailure);
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

using queue::dynamodb::Role;
using queue::dynamodb::WritesBy;

constexpr std::size_t kAccountDigits = 12;

OrExit<std::vector<Role>> named_roles(const Arguments& arguments) {
  std::vector<Role> roles;
  for (const std::string& name : arguments.all("role")) {
    const auto role = queue::dynamodb::role_of(name);
    if (!role) {
      return Exit::usage("--role is host, producer, reader, operator, setup or effects, not \"" + name + "\"");
    }
    if (std::find(roles.begin(), roles.end(), *role) == roles.end()) {
      roles.push_back(*role);
    }
  }
  return roles.empty() ? std::vector<Role>{Role::host} : roles;
}

OrExit<std::string> table_arn(const Arguments& arguments, const TableTarget& target) {
  const std::string account = arguments.get("account", "*");
  if (account != "*" && (account.size() != kAccountDigits ||
                         !std::all_of(account.begin(), account.end(), [](char c) { return c >= '0' && c <= '9'; }))) {
    return Exit::usage("--account is the 12 digits of an AWS account, not \"" + account + "\"");
  }
  const std::string region = target.connection.region.empty() ? "*" : target.connection.region;
  return "arn:" + std::string(dynamo::partition_of(region).name) + ":dynamodb:" + region + ":" + account + ":table/" +
         target.spec.table;
}

std::vector<std::string> actions_of(const std::vector<std::string_view>& names) {
  std::vector<std::string> actions;
  actions.reserve(names.size());
  for (const std::string_view name : names) {
    actions.push_back("dynamodb:" + std::string(name));
  }
  return actions;
}

std::vector<PolicyStatement> statements_of(const std::vector<Role>& roles, WritesBy writes, const std::string& table,
                                           const queue::dynamodb::TableSpec& spec) {
  std::vector<PolicyStatement> statements;
  for (const Role role : roles) {
    const auto permissions = spec.layout.indexed ? queue::dynamodb::permissions_of(role, writes)
                                                 : queue::dynamodb::leased_permissions_of(role, writes);
    std::string id(to_string(role));
    id.front() = static_cast<char>(id.front() - 'a' + 'A');
    statements.push_back({id + "OnTable", actions_of(permissions.table), table});
    if (!permissions.index.empty()) {
      statements.push_back({id + "OnIndex", actions_of(permissions.index), table + "/index/" + spec.index});
    }
  }
  return statements;
}

std::string json_policy(const std::vector<PolicyStatement>& statements) {
  return json_line("Version", "2012-10-17", "Statement",
                   array_of(statements, [](JsonWriter& json, const PolicyStatement& statement) {
                     put_object(json, "Sid", statement.id, "Effect", "Allow", "Action", statement.actions, "Resource",
                                statement.resource);
                   }));
}

Exit print_policy(const Arguments& arguments, Console& console) {
  SLUICE_TRY(roles, named_roles(arguments));
  SLUICE_TRY(terraform, second_of(arguments, "format", "json", "terraform"));
  SLUICE_TRY(singly, second_of(arguments, "writes", "batched", "single"));
  const WritesBy writes = *singly ? WritesBy::singles : WritesBy::batches;
  SLUICE_TRY(target, find_table(arguments));
  SLUICE_TRY(arn, table_arn(arguments, *target));
  const auto statements = statements_of(*roles, writes, *arn, target->spec);
  if (!*terraform) {
    console.out(json_policy(statements));
    return Exit::ok();
  }
  std::string name = "sluice";
  for (const Role role : *roles) {
    name += "_" + std::string(to_string(role));
  }
  console.out(terraform_policy(name, statements));
  return Exit::ok();
}

}  // namespace

std::vector<Command> table_check_commands() {
  return {
      {
          .name = "table check",
          .summary = "Compare a table with what a queue needs",
          .usage = "(--queue QUEUE | --table TABLE) [OPTION]...",
          .description =
              "Looks at keys, types, index, projection, state and TTL, and names each difference with its mend. Then "
              "looks for items that no queue shows, because the index leaves them out, and in a leased table for "
              "whatever nobody could hand out, half-made ownership items and heartbeats that cannot be: it counts "
              "them and names the first ten. That reads at most 100 MB, or with --all-items all there is, for half a "
              "read unit each 4 KB. Exit 0: the table can be used, though there may be advice; 1: it cannot, or not "
              "yet.",
          .flags = with_table_flags(
              joined({{"all-items", {}, "look at every item, however many there are"}}, output_flags())),
          .examples = "sluice table check --queue orders --output text\n"
                      "sluice table check --table orders && sluice run",
          .run = check_table,
      },
      {
          .name = "table policy",
          .summary = "Print the least privileges that a role needs on a table",
          .usage = "(--queue QUEUE | --table TABLE) [--role ROLE]... [OPTION]...",
          .description =
              "The roles are host (sluice run), producer (sends), reader (looks, changes nothing), operator (every "
              "command on messages) and setup (table create). Nothing is asked of AWS. Without --account and a region "
              "the policy holds for the table of that name in every account and region of its user. With --writes "
              "single it needs no PartiQL, as DynamoMQ's own policy: each message is then written by about 3 requests "
              "of its own, in place of a share of a batch.",
          .flags = with_table_flags(
              {repeated({"role", "host|producer|reader|operator|setup|effects",
                         "whose privileges; may be repeated [default: host]"}),
               {"writes", "batched|single", "with PartiQL's batches, or by single requests [default: batched]"},
               {"account", "ACCOUNT", "the AWS account that owns the table, 12 digits"},
               {"format", "json|terraform", "how to print it [default: json]"}}),
          .examples = "sluice table policy --queue orders --role host --account 123456789012\n"
                      "sluice table policy --table orders --role producer --format terraform",
          .run = print_policy,
      },
  };
}

}  // namespace sluice::cli
