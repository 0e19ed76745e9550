#pragma once

#include <array>
#include <chrono>
#include <sluice/handler.hpp>
#include <string>
#include <vector>

#include "directory.hpp"
#include "entry.hpp"
#include "publisher.hpp"
#include "service.hpp"

namespace sns {

/// The options of an SNS job, checked. A value.
struct Settings {
  static constexpr std::array<sluice::OptionSpec, 20> kOptions = {
      sluice::option<std::string>("topic",
                                  "The topic, by ARN or name, of messages for which neither a rule nor their "
                                  "type says it."),
      sluice::option<std::string>("region",
                                  "Where topics are that are known by name; default: from AWS's usual places. "
                                  "An ARN names its own."),
      sluice::option<std::string>("endpoint", "An address instead of AWS's own: for emulators."),
      sluice::option<std::string>("access_key_id", "A key instead of AWS's usual places; with secret_access_key."),
      sluice::option<std::string>("secret_access_key", "Its secret; best as ${VARIABLE}.").secret(),
      sluice::option<std::string>("session_token", "Of keys that are temporary.").secret(),
      sluice::option<std::vector<std::string>>("allow_topics",
                                               "Topics that may be published to, by ARN or name with *; default: all."),
      sluice::option<std::vector<std::string>>("deny_topics", "Topics that may not, in the same way."),
      sluice::option<std::vector<std::string>>(
          "ignore_unreadable_topics", "Topics, in the same way, that are used though their attributes cannot be read."),
      sluice::option<std::chrono::milliseconds>("refetch_interval", "24h", "How long the list of topics is good for."),
      sluice::option<std::string>("group_id", "hash",
                                  "An aggregate id that can be no MessageGroupId: hash it, or reject the message."),
      sluice::option<bool>("group_on_standard", "false", "Send MessageGroupId to topics that are not FIFO, too."),
      sluice::option<std::vector<std::string>>("attributes", R"(["traceparent", "tracestate"])",
                                               "Attributes of the message that go out under the same names."),
      sluice::option<std::vector<std::string>>(
          "retry_errors",
          R"(["NotFound", "AuthorizationError", "AccessDenied*", "InvalidSecurity", "SignatureDoesNotMatch", "KMS*"])",
          "Lasting errors of SNS that are retried by the job's policy, since an operator can mend them; with *. Others "
          "reject the message."),
      sluice::option<std::string>("outage", "retry",
                                  "What becomes of messages while SNS cannot be reached: retry, which counts as an "
                                  "attempt, or snooze, which does not."),
      sluice::option<std::chrono::milliseconds>("snooze_time", "10s", "For how long, then."),
      sluice::option<std::int64_t>("attempts", "3",
                                   "How often a throttled or failed request is made before the job's "
                                   "retry policy decides, up to 10."),
      sluice::option<std::chrono::milliseconds>("timeout", "10s", "For one request."),
      sluice::option<std::chrono::milliseconds>("linger", "5ms", "How long a batch waits for another message to come."),
      sluice::option<std::chrono::milliseconds>("linger_max", "50ms",
                                                "How long a message waits for its batch at most."),
  };

  /// Throws std::invalid_argument with a sentence for the user.
  static Settings read(const sluice::Options& options);

  AccessSettings access;
  DirectorySettings directory;
  EntryRules entries;
  QueueLimits queue;
  std::vector<std::string> attributes;
  std::vector<std::string> retried_errors;
  bool snooze_outages = false;
  std::chrono::milliseconds snooze_time{};
  std::chrono::milliseconds timeout{};
};

}  // namespace sns
