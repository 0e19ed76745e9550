#include <cstdint>
#include <string>

#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/message_view.hpp"
#include "host/queue/arrivals.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kAsTheQueueHasIt = -std::chrono::nanoseconds(1);
constexpr Duration kLongestWait = std::chrono::seconds(20);  // SQS's

/// What a claim itself tells, for a message that was taken away before it could be read.
queue::StoredMessage from_claim(const queue::Delivery& claim, queue::Half half) {
  queue::StoredMessage stored;
  stored.message = claim.message;
  stored.half = half;
  stored.version = claim.receipt.version;
  stored.invisible_until = claim.invisible_until;
  return stored;
}

/// What may be in flight in the session's queue; 0: no limit. On a leased table each host counts its own, and nobody
/// else what all of them have.
std::uint64_t limit_in_flight(const QueueSession& session) {
  const bool counted = session.host().store_of(session.queue()).kind == config::StoreKind::sqlite;
  return counted ? session.host().queue(session.queue()).max_in_flight : 0;
}

/// A limit that this command does not keep is not passed over in silence.
void tell_of_limit(const QueueSession& session, Console& console) {
  const std::uint64_t limit = session.host().queue(session.queue()).max_in_flight;
  if (limit > 0 && limit_in_flight(session) == 0) {
    console.note("warning: max_in_flight = " + std::to_string(limit) + " of queue " + session.queue() +
                 " holds for the jobs of hosts; on a table nobody counts what commands have in flight, so this takes "
                 "a message all the same");
  }
}

/// Looks once, and then until the time is over or something has come; Ctrl-C ends the wait as it ends any command.
Result<queue::Claimed> claim(queue::Source& source, const QueueSession& session, Duration visibility, Duration wait) {
  queue::ClaimRequest request{.max = 1, .visibility = visibility, .counts = true};
  request.rules.max_in_flight = limit_in_flight(session);
  if (wait == Duration::zero()) {
    return source.claim(request, session.deadline());
  }
  const SteadyTime end = session.clock().steady_now() + wait;
  queue::Arrivals arrivals(source, session.clock());
  queue::LookPace pace;
  while (true) {
    const std::uint64_t heard = arrivals.heard();
    auto claimed = source.claim(request, session.deadline());
    const SteadyTime now = session.clock().steady_now();
    if (!claimed || !claimed->deliveries.empty() || now >= end) {
      return claimed;
    }
    arrivals.wait(heard, pace.next(now, end, claimed->next_due), {});
  }
}

Exit receive(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(visibility, arguments.duration("visibility-timeout", kAsTheQueueHasIt));
  SLUICE_TRY(wait, arguments.duration("wait", Duration::zero()));
  if (*wait > kLongestWait) {
    return Exit::usage("--wait takes 20s at most; begin again for more");
  }
  SLUICE_TRY(session, QueueSession::open(arguments));
  const config::QueueConfig settings = session->host().queue(session->queue());
  if (*visibility == kAsTheQueueHasIt) {
    visibility = settings.visibility_timeout;
  }
  if (*visibility > settings.max_lease) {
    return Exit::usage("--visibility-timeout is more than queue " + session->queue() + "'s max_lease of " +
                       config::format_duration(settings.max_lease) + "; take less");
  }
  const queue::Half half = half_of(arguments);
  SLUICE_TRY(source, session->open_source(half));
  tell_of_limit(*session, console);
  const auto claimed = claim(**source, *session, *visibility, *wait);
  if (claimed.has_error()) {
    return session->failure(claimed.error());
  }
  if (claimed->deliveries.empty()) {
    return Exit::failure("nothing to receive: queue " + session->queue() + " has no message that is due" +
                         (half == queue::Half::dlq ? " in its dead-letter half" : ""));
  }
  const queue::Delivery& claim = claimed->deliveries.front();
  const auto stored = session->oper().get(claim.message.id, session->deadline());
  const WallTime now = session->clock().wall_now();
  show_message(stored.has_value() ? *stored : from_claim(claim, half), *output, now, console);
  return Exit::ok();
}

}  // namespace

Command receive_command() {
  return {
      .name = "receive",
      .group = "Queues",
      .summary = "Take the next message that is due, and show it",
      .usage = "[--dlq] [--visibility-timeout TIME] [--wait TIME] [OPTION]...",
      .description =
          "Nobody else is given the message until the time is over; then it is due again, and the attempt has counted. "
          "`sluice delete`, `sluice fail` and `sluice invalid` settle it before that; `sluice peek` looks without "
          "taking. Exit 1 when nothing is due, with --wait when nothing has come until then.",
      .flags = with_store_flags(
          {{.name = "dlq", .value = {}, .help = "from its dead-letter half"},
           {.name = "visibility-timeout",
            .value = "TIME",
            .help = "how long it stays hidden [default: the queue's, or 30s]"},
           {.name = "wait", .value = "TIME", .help = "for a message to come, at most 20s [default: not at all]"}}),
      .examples = "sluice receive --queue orders --visibility-timeout 5m",
      .run = receive,
  };
}

}  // namespace sluice::cli
