#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace publishing {

/// A destination's name in the form of AWS, ARN, or the same form for other systems, RN:
/// `arn:aws:sns:eu-west-1:123456789012:orders`, `rn::nats:::orders`. Borrows the text.
struct ResourceName {
  std::string_view text;
  std::string_view partition;
  std::string_view service;
  std::string_view region;
  std::string_view account;
  std::string_view resource;  ///< the rest, which may have colons and slashes in it
};

/// Nothing for what does not begin with `arn:` or `rn:`, or has fewer than five colons.
std::optional<ResourceName> parse_resource_name(std::string_view text);

/// Where a message goes, as a rule or the message's type says it. A value.
struct Target {
  std::string name;  ///< the resource's name without what stands before it
  std::string text;  ///< as it was said: a name, an ARN or an RN
};

}  // namespace publishing
