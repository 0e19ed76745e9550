#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamo/transport/http_transport.hpp"

namespace sns {

/// An element of a small XML document. A value.
struct XmlElement {
  std::string name;
  std::string text;  ///< what stands in it outside of its children
  std::vector<XmlElement> children{};

  /// The first child of that name, or null.
  const XmlElement* child(std::string_view wanted) const;
  /// The text of that child; empty when there is none.
  std::string text_of(std::string_view wanted) const;
  /// The first element of that name in the whole tree, in the order of the document, or null.
  const XmlElement* find(std::string_view wanted) const;
};

/// Nothing for what is not well-formed, has a document type, or is nested deeper than 32. Pure.
std::optional<XmlElement> parse_xml(std::string_view text);

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
