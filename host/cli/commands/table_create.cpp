#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <stop_token>
#include <thread>

#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/table_target.hpp"
#include "host/cli/unopened.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/terraform.hpp"
#include "host/stores/dynamodb/table.hpp"

namespace sluice::cli {

namespace {

using queue::dynamodb::TableOutcome;

constexpr Duration kTableTime = std::chrono::minutes(10);
constexpr Duration kTtlTime = std::chrono::seconds(30);

/// A stop token that Ctrl-C requests, for its lifetime.
class StopOnInterrupt {
 public:
  StopOnInterrupt() : end_(::eventfd(0, EFD_CLOEXEC)), watcher_([this] { watch(); }) {}
  ~StopOnInterrupt() {
    const std::uint64_t one = 1;
    const auto ignored = ::write(end_, &one, sizeof(one));
    static_cast<void>(ignored);
    watcher_.join();
    ::close(end_);
  }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void watch() {
    std::array<pollfd, 2> watched{pollfd{interrupt_.descriptor(), POLLIN, 0}, pollfd{end_, POLLIN, 0}};
    while (::poll(watched.data(), watched.size(), -1) < 0) {
      // A signal that this thread received itself: look again.
    }
    if (interrupt_.raised()) {
      stop_.request_stop();
    }
  }

  // Fixed after construction.
  const InterruptFlag interrupt_;
  const int end_;
  // Synchronises itself.
  std::stop_source stop_;
  std::jthread watcher_;
};

OrExit<TableTarget> target_of(const Arguments& arguments) {
  auto target = find_table(arguments);
  if (target) {
    target->spec.deletion_protection = !arguments.has("no-deletion-protection");
    target->spec.ttl = !arguments.has("no-ttl");
  }
  return target;
}

std::string as_json(const TableTarget& target, const std::string& region, bool created) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  write_table(json, target);
  json.member("region", region);
  json.member("created", created);
  json.end_object();
  return json.take_line();
}

std::string as_text(const TableTarget& target, const std::string& region, bool created) {
  return "table " + target.spec.table + with_index(target) + " in " + region +
         (created ? " is made\n" : " was there already, and is right\n");
}

Exit make_table(const TableTarget& target, Output output, Console& console) {
  const SystemClock clock;
  SeededRandom random;
  const auto connection = runtime::DynamoDbConnection::open(target.connection, clock, random);
  if (connection.has_error()) {
    return unopened(connection.error());
  }
  console.progress("waiting for table " + target.spec.table + " to become active");
  const StopOnInterrupt interrupt;
  const std::stop_callback end_requests(interrupt.token(), [&connection] { (*connection)->client().stop(); });
  const auto outcome = queue::dynamodb::create_queue_table((*connection)->client(), target.spec, clock,
                                                           Deadline::after(clock, kTableTime), interrupt.token());
  console.end_progress();
  if (outcome.has_error() && outcome.error().code() == ErrorCode::cancelled) {
    return {kExitInterrupted, "stopped before table " + target.spec.table +
                                  " was ready; it comes into being all the same once DynamoDB has been asked for it: "
                                  "`sluice table check` tells"};
  }
  if (outcome.has_error()) {
    return Exit::failure(outcome.error());
  }
  const bool created = *outcome == TableOutcome::created;
  if (target.spec.ttl) {
    const auto finding =
        queue::dynamodb::switch_ttl_on((*connection)->client(), target.spec, Deadline::after(clock, kTtlTime));
    if (finding) {
      console.note(finding->what + "; " + finding->mend);
    }
  }
  const std::string& region = (*connection)->region();
  console.out(output == Output::text ? as_text(target, region, created) : as_json(target, region, created));
  return Exit::ok();
}

Exit create_table(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(target, target_of(arguments));
  if (arguments.has("print-terraform")) {
    console.out(terraform_table(target->spec));
    return Exit::ok();
  }
  return make_table(*target, *output, console);
}

}  // namespace

Command table_create_command() {
  return {
      .name = "table create",
      .group = "Tables",
      .summary = "Make the DynamoDB table and index that a queue needs",
      .usage = "(--queue QUEUE | --table TABLE) [OPTION]...",
      .description =
          "The table is DynamoMQ's, or with --layout leased one for many queues without an index, which takes two "
          "write "
          "units a message in place of six; paid for by request, and protected from deletion. Waits until it can be "
          "used, and has DynamoDB remove void deduplication ids, unique keys and idempotency keys (TTL). One that is "
          "there and right is a success; one that is there and differs is an error that "
          "names every difference. Ctrl-C ends the waiting, not the table.",
      .flags = with_table_flags(joined(
          {{.name = "no-deletion-protection", .value = {}, .help = "leave the table unprotected"},
           {.name = "no-ttl", .value = {}, .help = "leave DynamoDB's TTL as it is"},
           {.name = "print-terraform", .value = {}, .help = "make nothing; print the table as Terraform has it"}},
          output_flags())),
      .examples =
          "sluice table create --queue orders\n"
          "sluice table create --table orders --endpoint http://127.0.0.1:8000\n"
          "sluice table create --table sluice-queues --layout leased\n"
          "sluice table create --table orders --print-terraform > orders.tf",
      .run = create_table,
  };
}

}  // namespace sluice::cli
