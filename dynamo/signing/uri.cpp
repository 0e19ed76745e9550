#include "dynamo/signing/uri.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/text/percent.hpp"

namespace sluice::dynamo {

namespace {

std::string reencoded(std::string_view text) { return percent_encoded(percent_decoded_loosely(text)); }

Error bad_url(std::string_view why) {
  return Error(ErrorKind::validation, "the URL " + std::string(why) + "; it must look like https://host:port");
}

}  // namespace

Result<UrlParts> parse_url(std::string_view url) {
  const auto unprintable = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; };
  if (std::any_of(url.begin(), url.end(), unprintable)) {
    return bad_url("holds white space or control characters");
  }
  UrlParts parts;
  const std::size_t colon = url.find("://");
  parts.scheme = url.substr(0, std::min(colon, url.size()));
  if (colon == std::string_view::npos || (parts.scheme != "http" && parts.scheme != "https")) {
    return bad_url("does not begin with http:// or https://");
  }
  url.remove_prefix(colon + 3);
  if (url.find('#') != std::string_view::npos) {
    return bad_url("has a fragment ('#')");
  }
  const std::size_t end = std::min(url.find_first_of("/?"), url.size());
  parts.host = url.substr(0, end);
  url.remove_prefix(end);
  if (parts.host.find('@') != std::string_view::npos) {
    return bad_url("holds a user name, which would be sent in the clear");
  }
  const std::string_view own_port = parts.scheme == "http" ? ":80" : ":443";
  if (parts.host.size() > own_port.size() && parts.host.substr(parts.host.size() - own_port.size()) == own_port) {
    parts.host.remove_suffix(own_port.size());
  }
  if (parts.host.empty() || parts.host.front() == ':') {
    return bad_url("names no host");
  }
  const std::size_t question = std::min(url.find('?'), url.size());
  parts.path = question == 0 ? "/" : url.substr(0, question);
  parts.query = url.substr(std::min(question + 1, url.size()));
  return parts;
}

std::string normalized_path(std::string_view path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return std::filesystem::path("/" + std::string(path)).lexically_normal().string();
}

std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (parameter.empty()) {
      continue;
    }
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    parameters.emplace_back(reencoded(parameter.substr(0, equals)),
                            reencoded(parameter.substr(std::min(equals + 1, parameter.size()))));
  }
  std::sort(parameters.begin(), parameters.end());
  std::string canonical;
  for (const auto& [name, value] : parameters) {
    canonical += canonical.empty() ? "" : "&";
    canonical += name;
    canonical += "=";
    canonical += value;
  }
  return canonical;
}

}  // namespace sluice::dynamo
