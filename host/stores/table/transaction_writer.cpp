#include "host/stores/table/transaction_writer.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <map>
#include <utility>

#include "base/guard.hpp"
#include "dynamo/codec/responses.hpp"
#include "dynamo/transaction.hpp"
#include "host/queue/effects.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {
namespace {

// A token lives for ten minutes at DynamoDB; a little less is sure.
constexpr Duration kTokenLife = std::chrono::minutes(9);

std::string condition_words(const TransactionDraft& draft, std::size_t i) {
  const auto& name = draft.names[i];
  const std::string asked = i < draft.request.actions.size() ? draft.request.actions[i].condition : std::string();
  return name.text + " was refused: " +
         refused_condition("its condition does not hold", asked, name.reject ? OnRefusal::reject : OnRefusal::retry);
}

// Names a table at its end, or before anything that is no part of a name.
bool names_table(const std::string& text, const std::string& table) {
  const std::string arn_end = ":table/" + table;
  for (std::size_t at = text.find(arn_end); at != std::string::npos; at = text.find(arn_end, at + 1)) {
    const std::size_t after = at + arn_end.size();
    const bool more = after < text.size() && (std::isalnum(static_cast<unsigned char>(text[after])) != 0 ||
                                              text[after] == '_' || text[after] == '-' || text[after] == '.');
    if (!more) {
      return true;
    }
  }
  return false;
}

TransactionWriter::Outcome refusal(ErrorCode code, std::string text, bool reject) {
  TransactionWriter::Outcome outcome;
  outcome.refused = SettleResult{SettleStatus::refused, Error(code, std::move(text)), reject};
  return outcome;
}

TransactionWriter::Outcome failure(const dynamo::Error& error) {
  TransactionWriter::Outcome outcome;
  outcome.outcome.error = error;
  outcome.outcome.fate = outcome_unknown(error) ? StatementFate::unknown : StatementFate::failed;
  return outcome;
}

}  // namespace

std::vector<TransactionWriter::Outcome> TransactionWriter::write(std::span<const Wanted> wanted, Deadline deadline) {
  std::vector<Outcome> outcomes(wanted.size());
  if (wanted.empty()) {
    return outcomes;
  }
  // What is sent is dated.
  if (const auto sure = parts_.clock.be_sure(place_, kTimeTolerance, deadline); !sure) {
    for (Outcome& outcome : outcomes) {
      outcome.outcome.error = dynamo::Error(dynamo::ErrorKind::server, sure.error().message());
    }
    return outcomes;
  }
  const WallTime now = parts_.clock.wall_now();
  std::vector<Draft> drafts;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Draft one{.place = i, .completion = wanted[i].completion, .own = &wanted[i].own};
    one.kept = open_.take(wanted[i].completion->receipt);
    one.left_out = one.kept.left_out;
    drafter_.fill(one, now);
    if (one.refused) {
      outcomes[i].refused = std::move(one.refused);
      continue;
    }
    if (one.kept.request) {
      one.request = *one.kept.request;
    }
    drafts.push_back(std::move(one));
  }
  for (int round = 1; !drafts.empty(); ++round) {
    std::vector<Draft> duplicates;
    for (std::size_t from = 0; from < drafts.size(); from += kMaxAtOnce) {
      send(std::span(drafts).subspan(from, std::min(kMaxAtOnce, drafts.size() - from)), outcomes, duplicates, deadline);
    }
    drafts = round < kMaxRounds ? without_duplicates(std::move(duplicates), outcomes, deadline) : std::vector<Draft>();
  }
  return outcomes;
}

/// What of them can be made again; the others have their outcome.
std::vector<TransactionDraft> TransactionWriter::without_duplicates(std::vector<Draft> drafts,
                                                                    std::vector<Outcome>& outcomes, Deadline deadline) {
  std::vector<Draft> again;
  for (Draft& one : drafts) {
    Outcome& outcome = outcomes[one.place];
    if (const auto unread = drafter_.leave_out_duplicates(one, deadline)) {
      outcome = failure(*unread);
      continue;
    }
    if (!one.refused) {
      drafter_.fill(one, parts_.clock.wall_now());
    }
    if (one.refused) {
      outcome.refused = std::move(one.refused);
    } else {
      again.push_back(std::move(one));
    }
  }
  return again;
}

void TransactionWriter::send(std::span<Draft> drafts, std::vector<Outcome>& outcomes, std::vector<Draft>& duplicates,
                             Deadline deadline) {
  std::vector<dynamo::TransactWriteRequest> requests;
  requests.reserve(drafts.size());
  for (Draft& one : drafts) {
    requests.push_back(std::move(one.request));
  }
  const SteadyTime asked_at = parts_.clock.steady_now();
  const auto answers = parts_.client.transact_each(requests, deadline);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    Draft& draft = drafts[i];
    draft.request = std::move(requests[i]);
    Outcome& outcome = outcomes[draft.place];
    if (!answers[i].error) {
      outcome = {};
      outcome.outcome.fate = StatementFate::done;
      continue;
    }
    outcome = outcome_of(draft, answers[i], deadline);
    const bool again = draft.kept.request != nullptr;
    const SteadyTime first_at = again ? draft.kept.first_at : asked_at;
    outcome.never_applied =
        again && parts_.clock.steady_now() - first_at < kTokenLife && SLUICE_GUARD(transaction_token);
    if (outcome.outcome.fate == StatementFate::unknown) {
      open_.remember(draft.completion->receipt,
                     {std::make_shared<const dynamo::TransactWriteRequest>(std::move(draft.request)),
                      std::move(draft.left_out), first_at});
    } else if (outcome.met_mark) {
      duplicates.push_back(std::move(draft));
    }
  }
}

TransactionWriter::Outcome TransactionWriter::outcome_of(const Draft& draft, const dynamo::TransactResult& answer,
                                                         Deadline deadline) {
  using dynamo::ErrorKind;
  const dynamo::Error& error = *answer.error;
  if (outcome_unknown(error)) {
    return failure(error);
  }
  if (!answer.reasons.empty()) {
    return cancelled(draft, answer);
  }
  if (error.kind == ErrorKind::resource_not_found || error.kind == ErrorKind::access_denied) {
    const auto blamed = blamed_table(draft, error, deadline);
    if (blamed) {
      const auto& name = draft.names[*blamed];
      const std::string& table = draft.request.actions[*blamed].table;
      const bool missing = error.kind == ErrorKind::resource_not_found;
      return refusal(missing ? ErrorCode::queue_missing : ErrorCode::denied,
                     name.text + " was refused: " +
                         (missing ? "table " + table + " does not exist in this region; create it, or mend its name"
                                  : error.message + "; let the role write table " + table),
                     name.reject);
    }
    return failure(error);
  }
  if (error.kind == ErrorKind::validation && draft.completion->effects != nullptr) {
    // DynamoDB does not say which action it dislikes unless its words do.
    std::string names;
    bool reject = false;
    for (const auto& name : draft.names) {
      if (name.kind == Draft::Name::Kind::write) {
        names += (names.empty() ? "" : ", or ") + name.text;
        reject = reject || name.reject;
      }
    }
    return refusal(
        ErrorCode::invalid,
        (names.empty() ? "its messages" : names) + " was refused: " + error.message + "; mend what the handler stages",
        reject);
  }
  return failure(error);
}

TransactionWriter::Outcome TransactionWriter::cancelled(const Draft& draft, const dynamo::TransactResult& answer) {
  const auto& reasons = answer.reasons;
  const auto kind = [&](std::size_t i) { return dynamo::error_kind(reasons[i].code, 0); };
  const std::size_t count = std::min(reasons.size(), draft.names.size());
  const auto failed = [&](std::size_t i, dynamo::ErrorKind wanted) {
    return reasons[i].code != "None" && !reasons[i].code.empty() && kind(i) == wanted;
  };
  // The fence before all: whoever has lost the message has no say.
  for (std::size_t i = 0; i < count; ++i) {
    if (draft.names[i].kind == Draft::Name::Kind::own && failed(i, dynamo::ErrorKind::conditional_check_failed)) {
      Outcome lost;
      lost.outcome.fate = StatementFate::refused;
      return lost;
    }
  }
  // What is refused for good is, whether its messages are duplicates or not.
  const auto met = [&](std::initializer_list<Draft::Name::Kind> kinds) {
    for (std::size_t i = 1; i < count; ++i) {
      if (failed(i, dynamo::ErrorKind::conditional_check_failed) &&
          std::find(kinds.begin(), kinds.end(), draft.names[i].kind) != kinds.end()) {
        return true;
      }
    }
    return false;
  };
  using Kind = Draft::Name::Kind;
  if (met({Kind::mark}) && !met({Kind::key, Kind::write})) {
    Outcome duplicate;
    duplicate.met_mark = true;
    duplicate.outcome.error = dynamo::Error(
        dynamo::ErrorKind::throttled, "others send with the same deduplication ids or unique keys at the same time");
    return duplicate;
  }
  for (std::size_t i = 1; i < count; ++i) {
    const auto& name = draft.names[i];
    if (failed(i, dynamo::ErrorKind::conditional_check_failed) && name.kind == Kind::key) {
      return refusal(ErrorCode::conflict,
                     name.text + " is held by another message by now; the next attempt finds it done", false);
    }
    if (failed(i, dynamo::ErrorKind::conditional_check_failed) && name.kind != Kind::mark) {
      return name.kind == Kind::message
                 ? refusal(ErrorCode::duplicate_id,
                           name.text +
                               " was refused: a message of that id is there already; give it another id, or "
                               "leave it out",
                           false)
                 : refusal(ErrorCode::conflict, condition_words(draft, i), name.reject);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!failed(i, dynamo::ErrorKind::validation)) {
      continue;
    }
    if (draft.names[i].kind == Kind::own) {  // the message's own record has become too large
      return failure(dynamo::Error(dynamo::ErrorKind::validation, reasons[i].message));
    }
    return refusal(ErrorCode::invalid,
                   draft.names[i].text +
                       " was refused: " + (reasons[i].message.empty() ? reasons[i].code : reasons[i].message) +
                       "; mend what the handler stages",
                   draft.names[i].reject);
  }
  return failure(*answer.error);
}

/// The action on a table other than the message's own that is missing, or that the role may not write.
std::optional<std::size_t> TransactionWriter::blamed_table(const Draft& draft, const dynamo::Error& error,
                                                           Deadline deadline) {
  std::map<std::string, std::size_t> others;  // each table with its first action
  for (std::size_t i = 1; i < draft.names.size() && i < draft.request.actions.size(); ++i) {
    if (const std::string& table = draft.request.actions[i].table; table != place_.table) {
      others.emplace(table, i);
    }
  }
  for (const auto& [table, action] : others) {
    if (error.kind == dynamo::ErrorKind::access_denied) {
      if (names_table(error.message, table)) {
        return action;
      }
      continue;
    }
    if (others.size() == 1) {
      return action;
    }
    // DynamoDB does not say which. A role that may not look has to be told of the first one it may be.
    const auto described = parts_.client.describe_table(table, deadline);
    if (!described && (described.error().kind == dynamo::ErrorKind::resource_not_found ||
                       described.error().kind == dynamo::ErrorKind::access_denied)) {
      return action;
    }
  }
  return std::nullopt;
}

}  // namespace sluice::queue::table
