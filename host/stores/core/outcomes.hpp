#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.hpp"
#include "host/queue/message.hpp"
#include "host/queue/source.hpp"

/// What a handler may make of a message, and what that comes to: the one list of outcomes of the whole host. Plugins
/// are read by it, metrics and traces name outcomes by it, a job ends messages by it, and stores keep its marks.
namespace sluice::queue::core {

// Marks. Every store keeps them as one number and has no rule of its own for any of them.

/// Its next delivery is a suspect: it was handed out as one, or is to be.
inline constexpr Marks kSuspect = 1;

/// By the numbers of the ABI (sluice_status) but for the last: the process that ran the handler has ended or had to be
/// killed.
enum class OutcomeStatus : std::uint8_t { done, retry, snooze, reject, discard, release, fault, crashed };

/// Where a claimed message has gone in the end. Every claim ends in exactly one of these.
enum class Ending : std::uint8_t { done, retried, snoozed, rejected, discarded, released, lost };
/// Their names in the drain certificate, the log and metrics.
inline constexpr std::array<std::string_view, 7> kEndingNames{"done",      "retried",  "snoozed", "rejected",
                                                              "discarded", "released", "lost"};
inline constexpr std::size_t kEndings = kEndingNames.size();
static_assert(kEndings == static_cast<std::size_t>(Ending::lost) + 1);

/// Who decides what becomes of a message.
enum class Decision : std::uint8_t {
  outcome,      ///< the outcome's own row, whatever the job's policy
  tries_again,  ///< the retry policy; once the attempts are used up, the dead-letter policy
  gives_up,     ///< the dead-letter policy
};

struct OutcomeRule {
  std::string_view name;  ///< in metrics and traces
  Decision decision = Decision::outcome;
  // Of Decision::outcome.
  CompletionAction action = CompletionAction::remove;
  Ending ending = Ending::done;
  Duration delay{};          ///< how long it is hidden, unless the handler names that
  bool takes_delay = false;  ///< the handler may name a delay
  bool takes_reason = false;
  Marks marks = 0;            ///< that it leaves on a message which stays
  std::string_view logged{};  ///< what the log says of it; empty: nothing
};

/// In the order of OutcomeStatus.
inline constexpr std::array kOutcomeRules{
    OutcomeRule{.name = "done"},
    OutcomeRule{.name = "retry", .decision = Decision::tries_again, .takes_delay = true, .takes_reason = true},
    OutcomeRule{.name = "snooze",
                .action = CompletionAction::release,
                .ending = Ending::snoozed,
                .takes_delay = true,
                .takes_reason = true},
    OutcomeRule{.name = "reject", .decision = Decision::gives_up, .takes_reason = true, .logged = "rejected"},
    OutcomeRule{.name = "discard", .ending = Ending::discarded, .takes_reason = true, .logged = "discarded"},
    OutcomeRule{.name = "release", .action = CompletionAction::release, .ending = Ending::released},
    OutcomeRule{.name = "fault", .decision = Decision::tries_again, .takes_reason = true},
    OutcomeRule{.name = "crashed", .decision = Decision::tries_again, .takes_reason = true, .marks = kSuspect}};

inline constexpr std::size_t kOutcomes = kOutcomeRules.size();
static_assert(kOutcomes == static_cast<std::size_t>(OutcomeStatus::crashed) + 1);

constexpr const OutcomeRule& rule_of(OutcomeStatus status) { return kOutcomeRules[static_cast<std::size_t>(status)]; }
/// Whether a handler may report this number.
constexpr bool is_reportable(std::int64_t status) {
  return status >= 0 && status < static_cast<std::int64_t>(OutcomeStatus::crashed);
}

}  // namespace sluice::queue::core
