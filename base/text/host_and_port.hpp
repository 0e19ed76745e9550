#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sluice {

/// Parts of a text; empty: there is none.
struct HostAndPort {
  std::string_view host;  ///< without the brackets that an IPv6 address needs
  std::string_view port;
};

/// Of "host", "host:port", "[address]" or "[address]:port". Of anything else `port` is no number.
inline HostAndPort host_and_port(std::string_view text) {
  const std::size_t begin = text.starts_with('[') ? 1 : 0;
  const std::string_view lead = begin == 1 ? "]:" : ":";
  const std::size_t end = std::min(text.find(lead.front()), text.size());
  const std::string_view rest = text.substr(end);
  return {text.substr(begin, end - begin), rest.starts_with(lead) ? rest.substr(lead.size()) : rest == "]" ? "" : rest};
}

}  // namespace sluice
