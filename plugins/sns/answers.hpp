#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamo/transport/http_transport.hpp"

namespace sns {

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
std::optional<std::map<std::string, std::string>> read_attributes(std::string_view body);

/// Whether AWS says with this code that the credentials are old.
bool says_expired(std::string_view code);

}  // namespace sns
