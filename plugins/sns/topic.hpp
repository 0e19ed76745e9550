#pragma once

#include <optional>
#include <string>
#include <string_view>

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
/// Whether a topic can have this name.
bool is_topic_name(std::string_view text);

}  // namespace sns
