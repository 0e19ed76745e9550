#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "entry.hpp"

namespace sns {

// The bodies of requests in AWS's query protocol. Pure functions.

/// Entries are named "0", "1", ... by their place.
std::string publish_batch_form(std::string_view topic_arn, const std::vector<const Entry*>& entries);
/// `token` of the page before; empty: the first one.
std::string list_topics_form(std::string_view token);
std::string topic_attributes_form(std::string_view topic_arn);

}  // namespace sns
