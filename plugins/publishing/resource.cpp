#include "publishing/resource.hpp"

#include <array>

namespace publishing {

std::optional<ResourceName> parse_resource_name(std::string_view text) {
  std::array<std::string_view, 5> fields;
  std::string_view rest = text;
  for (std::string_view& field : fields) {
    const std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) {
      return std::nullopt;
    }
    field = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
  }
  if (fields[0] != "arn" && fields[0] != "rn") {
    return std::nullopt;
  }
  return ResourceName{text, fields[1], fields[2], fields[3], fields[4], rest};
}

}  // namespace publishing
