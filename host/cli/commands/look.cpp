#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/shell_word.hpp"
#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/listing.hpp"
#include "host/queue/arrivals.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kDefaultLimit = 10;
constexpr std::size_t kMaxLimit = 1'000'000;
constexpr std::size_t kPageSize = 250;
/// "10 of 419", and how to see the others.
std::string summary(const operate::ListEnding& ending) {
  std::string text = std::to_string(ending.shown);
  if (ending.total) {
    text += std::string(" of ") + (ending.at_least ? "more than " : "") + std::to_string(*ending.total);
  }
  return text + "; --all shows it, --cursor " + shell_word(ending.next) + " goes on";
}

void say_nothing(Console& console) {
  if (console.shows_text() && console.output_is_terminal()) {
    console.note("no messages");
  }
}

Exit ls(const Arguments& arguments, Console& console) {
  SLUICE_TRY(limit, arguments.count("limit", kDefaultLimit, kMaxLimit));
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  const bool counted_by_store = filter->empty() && !session->place().looks_are_billed();
  operate::ListPlan plan{.filter = std::move(*filter),
                         .limit = arguments.has("all") ? 0 : *limit,
                         .newest_first = arguments.has("newest")};
  plan.halves = halves_of(arguments);
  std::vector<std::string_view> columns{"ID", "STATE", "RECEIVES", "AGE", "ERROR"};
  if (arguments.has("both")) {
    columns.insert(columns.begin() + 1, "HALF");
  }
  RecordStream writer("statuses", std::move(columns), console);
  operate::Listing listing(session->oper(), session->clock(), std::move(plan),
                           {.show = [&writer](const queue::StoredMessage& message,
                                              WallTime now) { writer.add(operate::ListedMessage{message}, now); },
                            .page_ended =
                                [&writer, &console] {
                                  writer.flush();
                                  return console.writable();
                                }});
  if (arguments.has("cursor") && !listing.resume(arguments.get("cursor"))) {
    return Exit::usage("--cursor " + arguments.get("cursor") +
                       ": a list with --both gives one such as standard:... or dlq:...");
  }
  if (const auto listed = listing.run(); !listed) {
    const bool wrong_cursor = listed.error().code() == ErrorCode::invalid && listing.at_cursor();
    return wrong_cursor ? Exit::usage("--cursor: " + listed.error().message()) : session->failure(listed.error());
  }
  const operate::ListEnding& ending = listing.ending();
  const bool told = console.shows_text() && console.error_is_terminal();
  if (counted_by_store) {
    listing.count_by_stats();
  } else if (ending.next.empty() || told) {
    listing.count_ahead();
  }
  writer.finish(member_if(ending.total.has_value(), "total", ending.total),
                member_if(!ending.next.empty(), "next", ending.next));
  console.flush();
  if (ending.shown == 0) {
    say_nothing(console);
  } else if (!ending.next.empty() && ending.total != ending.shown && told) {
    console.note(summary(ending));
  }
  return Exit::ok();
}

/// A JSON array of whole messages, or one block of lines for each.
Exit peek(const Arguments& arguments, Console& console) {
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(limit, arguments.count("limit", kDefaultLimit, kMaxLimit));
  SLUICE_TRY(session, QueueSession::open(arguments));
  const bool any_state = arguments.has("any-state");
  // With a filter nobody knows how far it is to the next match.
  const bool chooses = !any_state || !filter->empty();
  JsonList shown({}, console);
  queue::ListRequest request{.half = half_of(arguments), .limit = 0, .cursor = {}};
  std::size_t left = *limit;
  do {
    request.limit = chooses ? std::clamp<std::size_t>(left * 2, 25, kPageSize) : std::min(left, kPageSize);
    SLUICE_TRY(page, session->checked(session->oper().list(request, session->deadline())));
    const WallTime now = session->clock().wall_now();
    for (const queue::StoredMessage& message : page->messages) {
      const bool fits = any_state || message.state(now) == queue::MessageState::ready;
      if (left == 0 || !fits || !filter->matches(message, now)) {
        continue;
      }
      if (console.shows_json()) {
        shown.add([&](JsonWriter& json) { operate::write_object(json, message, now); });
        shown.flush();
      } else {
        console.out((left < *limit ? "\n" : "") + message_text(message, now, console.output_has_colour()));
      }
      --left;
    }
    console.flush();
    request.cursor = page->next;
  } while (left > 0 && !request.cursor.empty() && console.writable());
  if (console.shows_json()) {
    shown.finish();
  } else if (left == *limit) {
    say_nothing(console);
  }
  return Exit::ok();
}

/// Taken, not ended, and its time is over: whoever has it may be at work on it all the same.
bool is_overdue(const queue::StoredMessage& stored, WallTime now) {
  return stored.state(now) == queue::MessageState::ready && stored.received_at && stored.invisible_until;
}

/// A message, and whose handler is at work on it, if anybody knows. Borrows.
struct MessageAtHosts {
  const queue::StoredMessage& stored;
  std::optional<queue::PartOwner> owner{};  ///< where its record does not tell what is in flight
  std::optional<operate::HandlerAtWork> holder{};
  std::string quiet{};  ///< the hosts that do not answer, as operate::quiet_hosts names them
};

std::string holder_text(const MessageAtHosts& message, WallTime now) {
  const std::string quiet = message.quiet.empty() ? "" : "; not heard of: " + message.quiet;
  if (!message.holder && message.owner) {
    const queue::PartOwner& owner = *message.owner;
    const std::string untold = "; nobody tells of a handler at work on it" + quiet;
    return !owner.owner           ? "whoever has " + owner.part + untold
           : owner.owner->empty() ? "nobody: no host has " + owner.part
                                  : *owner.owner + ", by " + owner.part + untold;
  }
  if (!message.holder && is_overdue(message.stored, now)) {
    return "nobody any more: it was taken and not ended, and its time was over " +
           short_duration(now - *message.stored.invisible_until) + " ago" + quiet;
  }
  if (!message.holder) {
    return "no host tells of a handler at work on it: it waits for one, or was taken by `sluice receive` or by who is "
           "gone; others get it when its time is over" +
           quiet;
  }
  const fleet::RunningRecord& handler = message.holder->handler;
  return "host " + message.holder->host + ", job " + handler.job +
         (handler.handler.empty() ? ""
                                  : ", worker " + std::to_string(handler.worker) + ", handler " + handler.handler) +
         ", attempt " + std::to_string(handler.attempt) +
         (handler.since == WallTime{} ? "" : ", for " + short_duration(now - handler.since)) +
         (handler.leased_until == WallTime{} ? ""
                                             : "; its lease until " + operate::to_the_second(handler.leased_until)) +
         (message.owner ? ", by " + message.owner->part : "") +
         (message.holder->answers ? "" : "; the host does not answer, `sluice hosts` tells since when");
}

void describe(const MessageAtHosts& message, operate::Fields& fields) {
  describe(message.stored, fields);
  fields.cell({"HELD BY"}, holder_text(message, fields.now()));
  if (message.holder) {
    fields.record("holder", *message.holder);
  } else {
    fields.member("holder", std::optional<std::string>());
  }
  if (message.owner) {
    fields.member("owner", message.owner->owner);
    fields.member("part", message.owner->part);
  }
}

/// As hosts and crash ledgers tell. Hosts elsewhere are asked to tell in detail only where somebody waits for it, as
/// that is written on their boards.
void find_holder(MessageAtHosts& message, const std::string& queue, const Arguments& arguments, bool asks_hosts) {
  std::optional<operate::HandlerAtWork>& holder = message.holder;
  const auto is_found = [&](const fleet::FleetView& view) {
    for (const fleet::KnownHost& host : view.hosts) {
      for (const fleet::RunningRecord& handler : host.record.running) {
        // One that answers knows better than what was left of another one, and one that has ended holds nothing.
        if (host.record.state != fleet::HostState::ended && handler.message == message.stored.message.id &&
            handler.queue == queue && (!holder || host.answers())) {
          holder = {host.record.label(), handler, host.answers()};
        }
      }
    }
    message.quiet = operate::quiet_hosts(view, asks_hosts);
    return holder && holder->answers;
  };
  auto session = FleetSession::open(arguments);
  if (session.has_error()) {
    return;
  }
  if (asks_hosts) {
    const InterruptFlag interrupt;
    static_cast<void>(look_in_detail(*session, interrupt, is_found));
  } else if (const auto view = session->hosts_now(); !view.has_error()) {
    is_found(*view);
  }
}

Exit get(const Arguments& arguments, Console& console) {
  SLUICE_TRY(id, the_message_id(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  SLUICE_TRY(message, session->checked(session->oper().get(*id, session->deadline())));
  const WallTime now = session->clock().wall_now();
  std::optional<queue::PartOwner> owner;
  if (message->state(now) == queue::MessageState::ready) {
    // The message has been read, whatever can be told beside.
    if (auto told = session->oper().owner_of(*id, session->deadline())) {
      owner = *std::move(told);
    }
  }
  if (message->half == queue::Half::dlq && owner && owner->owner.value_or("").empty()) {
    owner.reset();  // hosts own dead letters only where a job takes them
  }
  if (message->state(now) != queue::MessageState::in_flight && !is_overdue(*message, now) && !owner) {
    return show_message(*message, now, console);
  }
  const bool asks_hosts = console.shows_text() && console.output_is_terminal();
  MessageAtHosts shown{*message, std::move(owner)};
  find_holder(shown, session->queue(), arguments, asks_hosts);
  return print(console.shows_text()
                   ? message_text(operate::row_of(shown, now), message->message, console.output_has_colour())
                   : json_of(shown, now),
               console);
}

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
  constexpr Duration kLongestWait = std::chrono::seconds(20);  // SQS's
  SLUICE_TRY(wait, arguments.duration("wait", Duration::zero(), Duration::zero(), kLongestWait));
  SLUICE_TRY(session, QueueSession::open(arguments));
  const config::QueueConfig settings = session->host().queue(session->queue());
  SLUICE_TRY(visibility, arguments.duration("visibility-timeout", settings.visibility_timeout));
  if (*visibility > settings.max_lease) {
    return Exit::usage("--visibility-timeout is more than queue " + session->queue() + "'s max_lease of " +
                       config::format_duration(settings.max_lease) + "; take less");
  }
  const queue::Half half = half_of(arguments);
  SLUICE_TRY(source, session->open_source(half));
  tell_of_limit(*session, console);
  SLUICE_TRY(claimed, session->checked(claim(**source, *session, *visibility, *wait)));
  if (claimed->deliveries.empty()) {
    return Exit::failure("nothing to receive: queue " + session->queue() + " has no message that is due" +
                         (half == queue::Half::dlq ? " in its dead-letter half" : ""));
  }
  const queue::Delivery& claim = claimed->deliveries.front();
  const auto stored = session->oper().get(claim.message.id, session->deadline());
  const WallTime now = session->clock().wall_now();
  return show_message(stored.has_value() ? *stored : from_claim(claim, half), now, console);
}

}  // namespace

std::vector<Command> look_commands() {
  return {
      {
          .name = "ls",
          .summary = "List messages, the oldest or the newest first",
          .usage = "[QUEUE] [--dlq | --both] [--newest] [FILTER] [--limit N | --all] [OPTION]...",
          .description =
              "Shows a row for each message, or prints a JSON object whose \"statuses\" have one object for each: id, "
              "state, receive count, and why it failed last. Where there are more, it says how many (on DynamoDB, if "
              "a thousand more records tell) and the cursor that goes on, in JSON as \"total\" and \"next\". `sluice "
              "peek` shows whole messages and `sluice export` writes them out. Nothing is claimed or changed.",
          .flags = with_store_flags(joined({against("both", kDlqFlag),
                                            {"both", {}, "its dead-letter half too, after the other"},
                                            {"newest", {}, "the newest first"},
                                            filled({"cursor", "CURSOR", "go on where a list has ended"}),
                                            {"limit", "N", "show at most N messages [default: 10]"},
                                            against("limit", {"all", {}, "show all"})},
                                           filter_flags())),
          .examples = "sluice ls orders --limit 3\n"
                      "sluice ls orders --where 'receive_count > 3 and data.type = \"invoice\"'\n"
                      "sluice ls orders --both --newest\n"
                      "sluice ls orders --dlq --error-like '*timeout*' --output text",
          .run = ls,
      },
      {
          .name = "peek",
          .summary = "Look at the next messages without receiving them",
          .usage = "[QUEUE] [--dlq] [FILTER] [--limit N] [OPTION]...",
          .description =
              "Prints a JSON array of whole messages, in the order in which they would be received; only those that "
              "are due, unless there is --any-state. Nothing is claimed or changed.",
          .flags = with_store_flags(joined({kDlqFlag,
                                            {"limit", "N", "at most N messages [default: 10]"},
                                            {"any-state", {}, "those in flight and those delayed too"}},
                                           filter_flags())),
          .examples = "sluice peek orders --limit 1\n"
                      "sluice peek orders --dlq --where 'failure.attempts >= 5'",
          .run = peek,
      },
      {
          .name = "get",
          .summary = "Show one message, wherever it lies in its queue",
          .usage = "[QUEUE] ID [OPTION]...",
          .description =
              "Prints a JSON object: body, state, times, attributes, and why it failed last; of a message in flight "
              "also which host and handler have it, and until when, as far as hosts tell: on a terminal those "
              "elsewhere are asked, which takes some seconds. On a leased table and in an outbox, where hosts own "
              "parts of the queue and records do not tell what is in flight, it says so of one that is ready, and "
              "whose part it lies in. The dead-letter half is looked in too; nothing is claimed or changed.",
          .flags = with_store_flags({kIdFlag}),
          .examples = "sluice get orders A-101",
          .run = get,
      },
      {
          .name = "receive",
          .summary = "Take the next message that is due, and show it",
          .usage = "[QUEUE] [--dlq] [--visibility-timeout TIME] [--wait TIME] [OPTION]...",
          .description =
              "Nobody else is given the message until the time is over; then it is due again, and the attempt has "
              "counted. `sluice delete`, `sluice fail` and `sluice invalid` settle it before that; `sluice peek` "
              "looks without taking. Exit 1 when nothing is due, with --wait when nothing has come until then.",
          .flags = with_store_flags(
              {{"dlq", {}, "from its dead-letter half"},
               {"visibility-timeout", "TIME", "how long it stays hidden [default: the queue's, or 30s]"},
               {"wait", "TIME", "for a message to come, at most 20s [default: not at all]"}}),
          .examples = "sluice receive orders --visibility-timeout 5m",
          .run = receive,
      },
  };
}

}  // namespace sluice::cli
