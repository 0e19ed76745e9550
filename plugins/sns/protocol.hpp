#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dynamo/transport/http_transport.hpp"

namespace sns {

/// A topic by its ARN. A value.
struct Topic {
  std::string arn;
  std::string region;
  std::string name;

  /// AWS gives such a name to every FIFO topic and to no other.
  bool is_fifo() const { return name.ends_with(".fifo"); }
};

/// Nothing for what is no ARN of a topic: its region becomes part of an address, so every field has only the
/// characters that AWS allows.
std::optional<Topic> parse_topic_arn(std::string_view text);
/// Whether a region's name can be a part of an address.
bool is_region(std::string_view text);
/// Whether a topic can have this name.
bool is_topic_name(std::string_view text);

inline constexpr std::size_t kMaxBytes = 256 * 1024;  ///< of a message, and of a batch
inline constexpr std::size_t kMaxEntries = 10;        ///< of a batch

/// One message for a topic. A value.
struct Entry {
  std::string body;
  std::string group;                                            ///< MessageGroupId; empty: none
  std::string deduplication;                                    ///< MessageDeduplicationId; empty: none
  std::vector<std::pair<std::string, std::string>> attributes;  ///< all of type String; none is empty

  /// Bytes as SNS counts them against its limit.
  std::size_t size() const;
};

/// Why a message can be no entry, for people.
struct BadEntry {
  std::string reason;
};

/// How a message becomes an entry.
struct EntryRules {
  bool hash_groups = true;         ///< what is no group id becomes its SHA-256; otherwise the message is bad
  bool group_on_standard = false;  ///< send a group to topics that are not FIFO too
};

/// True for what SNS takes as a group or deduplication id: 1 to 128 characters of ASCII, none of them a space.
bool is_fifo_id(std::string_view text);

/// What SNS would refuse is found here, before anything is sent. `unique_id` is the same at each attempt, so that a
/// repeated one is stored once.
std::variant<Entry, BadEntry> make_entry(const Topic& topic, std::string_view body, std::string_view aggregate_id,
                                         std::string_view unique_id,
                                         std::vector<std::pair<std::string, std::string>> attributes,
                                         const EntryRules& rules);

// The bodies of requests in AWS's query protocol. Pure functions.

/// Entries are named "0", "1", ... by their place.
std::string publish_batch_form(std::string_view topic_arn, const std::vector<const Entry*>& entries);
/// `token` of the page before; empty: the first one.
std::string list_topics_form(std::string_view token);
std::string topic_attributes_form(std::string_view topic_arn);

/// Why SNS, or the way to it, did not do what it was asked. A value.
struct Failure {
  std::string code;     ///< AWS's, such as "NotFound"; "Unreachable", "Timeout" or "NoCredentials" where no answer came
  std::string message;  ///< one line

  /// Whether the same request may succeed a moment later.
  bool temporary = false;
  /// No answer came, or none that is SNS's: the message is not to blame.
  bool unreachable = false;

  std::string text() const { return message.empty() ? code : code + ": " + message; }
};

/// What became of each entry of a batch, by its place: nothing where SNS has it.
using BatchResults = std::vector<std::optional<Failure>>;

/// What an answer to a batch of `count` says. Of a whole request that failed, each entry has the same failure, and
/// `whole` is set. Pure.
struct BatchAnswer {
  BatchResults results;
  bool whole = false;
};
BatchAnswer read_batch_answer(const sluice::dynamo::HttpResult& result, std::size_t count);

/// The failure of any request; nothing where it has succeeded.
std::optional<Failure> read_failure(const sluice::dynamo::HttpResult& result);

struct TopicPage {
  std::vector<std::string> arns;
  std::string next_token;  ///< empty: the last page
};
std::optional<TopicPage> read_topics(std::string_view body);
/// Whether it is an answer to a question for a topic's attributes.
bool tells_attributes(std::string_view body);

}  // namespace sns
