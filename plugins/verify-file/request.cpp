#include "request.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;

constexpr std::size_t kMaxBody = 64 * 1024;

json parse_object(std::string_view body) {
  if (body.size() > kMaxBody) {
    throw BadRequest("the body is larger than " + std::to_string(kMaxBody) + " bytes");
  }
  json value;
  try {
    value = json::parse(body.begin(), body.end());
  } catch (const json::parse_error& error) {
    // what() is "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string what = error.what();
    const std::size_t label = what.find("] ");
    throw BadRequest("the body is not JSON: " + (label == std::string::npos ? what : what.substr(label + 2)));
  }
  if (!value.is_object()) {
    throw BadRequest(std::string("the body is ") + value.type_name() +
                     R"(, not an object like {"path": "...", "sha256": "..."})");
  }
  return value;
}

std::optional<std::string> text_member(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    return std::nullopt;
  }
  if (!found->is_string()) {
    throw BadRequest(std::string("\"") + name + "\" is " + found->type_name() + ", not a string");
  }
  return found->get<std::string>();
}

std::optional<std::string> hash_member(const json& object, const char* name, std::size_t digits) {
  std::optional<std::string> hash = text_member(object, name);
  if (!hash) {
    return std::nullopt;
  }
  for (char& c : *hash) {
    c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const bool hexadecimal = hash->find_first_not_of("0123456789abcdef") == std::string::npos;
  if (hash->size() != digits || !hexadecimal) {
    throw BadRequest(std::string("\"") + name + "\" is not a hash of " + std::to_string(digits) +
                     " hexadecimal digits");
  }
  return hash;
}

}  // namespace

Request parse_request(std::string_view body) {
  const json object = parse_object(body);
  const std::optional<std::string> path = text_member(object, "path");
  if (!path || path->empty()) {
    throw BadRequest("the body has no \"path\"");
  }
  if (path->find('\0') != std::string::npos) {
    throw BadRequest("\"path\" has a zero byte in it");
  }
  Request request{*path, hash_member(object, "md5", 32), hash_member(object, "sha256", 64)};
  if (!request.md5 && !request.sha256) {
    throw BadRequest("the body has neither \"md5\" nor \"sha256\"");
  }
  return request;
}
