#include "base/random.hpp"
#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/table_target.hpp"
#include "host/cli/unopened.hpp"
#include "host/cli/views/output.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/leased/shard_count.hpp"

namespace sluice::cli {

namespace {

using queue::leased::Shards;

constexpr Duration kTime = std::chrono::seconds(30);

/// What stands in the table, and whether this command has written it.
struct Standing {
  std::optional<Shards> before;
  Shards now;
  bool written = false;
};

std::string as_json(const TableTarget& target, const Standing& standing) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("queue", target.place.queue());
  json.member("table", target.spec.table);
  json.member("shards", std::uint64_t{standing.now.count});
  json.member("most_ever", std::uint64_t{standing.now.most_ever});
  json.key("before");
  if (standing.before) {
    json.value(std::uint64_t{standing.before->count});
  } else {
    json.null();
  }
  json.member("changed", standing.written);
  json.end_object();
  return json.take_line();
}

std::string as_text(const TableTarget& target, const Standing& standing) {
  const std::string number = std::to_string(standing.now.count);
  std::string text =
      "queue " + target.place.queue() + " has " + number + (standing.now.count == 1 ? " shard" : " shards");
  if (standing.written && standing.before) {
    text += " in place of " + std::to_string(standing.before->count);
  }
  if (standing.written) {
    text += "; hosts and senders see it within 30 s, and what lies beyond is drained";
  } else if (standing.now.most_ever > standing.now.count) {
    text += ", and had " + std::to_string(standing.now.most_ever);
  }
  return text + "\n";
}

/// Asks the table, or writes the number down; `count` 0: asks.
Result<Standing> look_or_change(dynamo::Client& client, const SystemClock& clock, const queue::table::QueueTable& place,
                                std::uint32_t count, std::uint32_t configured) {
  const Deadline deadline = Deadline::after(clock, kTime);
  if (count > 0) {
    const auto change = queue::leased::change_shards(client, place, count, configured, deadline);
    return change ? Result<Standing>(Standing{change->before, change->after, change->written}) : change.error();
  }
  queue::leased::ShardCount known(client, clock, place, configured);
  const auto shards = known.refresh(deadline);
  return shards ? Result<Standing>(Standing{*shards, *shards, false}) : shards.error();
}

Exit show_or_change(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(wanted, arguments.count("to", 0, queue::leased::kMostShards));
  if (arguments.get("queue").empty()) {
    return Exit::usage("--queue says whose shards; a leased table holds many queues");
  }
  SLUICE_TRY(target, find_table(arguments));
  if (target->spec.layout.indexed) {
    return Exit(kExitConfiguration, "queue " + target->place.queue() +
                                        " lies in a table of DynamoMQ's layout, which has no shards; only queues with "
                                        "layout = \"leased\" in the host file have some");
  }
  const SystemClock clock;
  SeededRandom random;
  const auto connection = runtime::DynamoDbConnection::open(target->connection, clock, random);
  if (connection.has_error()) {
    return unopened(connection.error());
  }
  const queue::table::QueueTable place{target->place.queue(), target->spec.table, {}, (*connection)->region()};
  const auto standing = look_or_change((*connection)->client(), clock, place, static_cast<std::uint32_t>(*wanted),
                                       target->place.host().queue(place.queue).shards);
  if (!standing) {
    return Exit::failure(target->place.explained(standing.error(), place.queue));
  }
  console.out(*output == Output::text ? as_text(*target, *standing) : as_json(*target, *standing));
  return Exit::ok();
}

}  // namespace

Command table_shards_command() {
  return {
      .name = "table shards",
      .group = "Tables",
      .summary = "Show how many shards a leased queue has, or change it while hosts work",
      .usage = "--queue QUEUE [--to N] [OPTION]...",
      .description =
          "A queue of the leased layout has as many shards as its table says, and the host file only until then. With "
          "--to the number is raised or lowered: hosts share the new shards within a lease, senders follow within 30 "
          "s, "
          "and the shards that are beyond the new number are worked off and then given up, after 90 s at the earliest. "
          "Nobody has to stop. Only the order within groups is not kept meanwhile: a group's older messages may lie in "
          "another shard than its newer ones.",
      .flags = with_table_flags(
          joined({{.name = "to", .value = "N", .help = "the number from now on, 1 to 1024"}}, output_flags())),
      .examples =
          "sluice table shards --queue orders\n"
          "sluice table shards --queue orders --to 32",
      .run = show_or_change,
  };
}

}  // namespace sluice::cli
